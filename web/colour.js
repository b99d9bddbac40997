// colour.js - from pixel values to colours: maps, contrast, painting. No DOM: tested by node.
//
// Cost: paint() is one table look-up per pixel; a sample of at most 32,768 pixels is sorted for the contrast.

const MAPS = {
	grey: ["000000", "ffffff"],
	"grey, inverted": ["ffffff", "000000"],
	viridis: ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"],
	inferno: ["000004", "160b39", "420a68", "6a176e", "932667", "bc3754", "dd513a", "f37819", "fca50a", "f6d746", "fcffa4"],
	"heat, inverted": ["ffffff", "fff3c4", "ffd166", "f78c3b", "d8432b", "8c1d2f", "2a0a18"],
	ice: ["05080f", "0b2a4a", "0f4f7a", "1583a3", "3bb8bd", "9be4d6", "f4fffb"],
};
export const mapNames = Object.keys(MAPS);
const STEPS = 256, TABLE = 16384, SAMPLE = 32768;

const hex = (text) => [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16));

/** [r, g, b] of a map at 0..1. */
function colourAt(name, position) {
	const stops = (MAPS[name] ?? MAPS.inferno).map(hex);
	const place = Math.min(1, Math.max(0, position)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(place));
	return stops[i].map((from, k) => Math.round(from + (stops[i + 1][k] - from) * (place - i)));
}

const words = new Map();
const word = ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0; // bytes r g b a in memory

/** The colours of a map as words for ImageData, from its low to its high end. */
export function steps(name) {
	if (!words.has(name))
		words.set(name, Uint32Array.from({length: STEPS}, (_, i) => word(colourAt(name, i / (STEPS - 1)))));
	return words.get(name);
}

/** Where a value between low and high stands in the colour map, 0..1. Logarithmic: of 1 + the distance from low; where pixels are
 *  no whole numbers, of a thousand steps. */
export function position(value, {low, high, log, fractions}) {
	const part = (value - low) / (high - low || 1);
	if (!log)
		return part;
	const size = fractions ? 1000 : Math.max(high - low, 1);
	return Math.log1p(Math.max(0, part) * size) / Math.log1p(size);
}

/** The value at a position: what position() does, backwards. */
export function valueOf(place, {low, high, log, fractions}) {
	if (!log)
		return low + place * (high - low);
	const size = fractions ? 1000 : Math.max(high - low, 1);
	return low + (Math.expm1(place * Math.log1p(size)) / size) * (high - low);
}

/** A rising sample of the pixels that are valid, every n-th, n so that columns do not repeat. */
export function sample(pixels, invalid, columns) {
	let stride = Math.max(1, Math.ceil(pixels.length / SAMPLE));
	while (stride > 1 && columns % stride === 0)
		stride++;
	const found = new Float64Array(Math.ceil(pixels.length / stride));
	let n = 0;
	for (let i = 0; i < pixels.length; i += stride) {
		const value = pixels[i];
		if (value !== invalid && Number.isFinite(value))
			found[n++] = value;
	}
	return found.subarray(0, n).sort();
}

export function percentile(sorted, share) {
	return sorted.length ? sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * (sorted.length - 1))))] : 0;
}

/** {low, high} of a contrast: by percentiles of the valid pixels, all of them ("full"), or by hand. */
export function limits(sorted, contrast) {
	let low = contrast.low, high = contrast.high;
	if (contrast.range !== "manual") {
		const inside = contrast.range === "full" ? 1 : contrast.percentile / 100;
		low = percentile(sorted, contrast.range === "full" ? 0 : 0.01);
		high = percentile(sorted, inside);
	}
	return high > low ? {low, high} : {low, high: low + 1};
}

/** Counts of a sample in n bins over the colour map; what is beyond its ends is in the first and in the last bin. */
export function histogram(sorted, shown, n) {
	const counts = new Uint32Array(n);
	let from = 0;
	for (let i = 0; i < n; i++) {
		const to = i === n - 1 ? sorted.length : above(sorted, valueOf((i + 1) / n, shown), from);
		counts[i] = to - from;
		from = to;
	}
	return counts;
}

/** The first index whose element is not below a value. */
function above(sorted, value, from) {
	let low = from, high = sorted.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/** The colours of pixels, as words for ImageData. shown: {low, high, log, fractions, map}; mask: colour of pixels without a value. */
export function paint(pixels, invalid, shown, mask, out) {
	const table = new Uint32Array(TABLE + 1);
	let from = 0;
	steps(shown.map).forEach((colour, i) => {
		const end = (valueOf((i + 0.5) / (STEPS - 1), shown) - shown.low) / (shown.high - shown.low);
		const to = i === STEPS - 1 ? TABLE + 1 : Math.max(from, Math.min(TABLE + 1, Math.round(end * TABLE)));
		table.fill(colour, from, to);
		from = to;
	});
	const low = shown.low, factor = TABLE / (shown.high - shown.low), dark = word(mask);
	for (let i = 0; i < pixels.length; i++) {
		const value = pixels[i];
		if (value === invalid || value !== value) {
			out[i] = dark;
			continue;
		}
		const place = (value - low) * factor;
		out[i] = table[place <= 0 ? 0 : place >= TABLE ? TABLE : place | 0];
	}
	return out;
}
