// scale.js - where the marks of an axis stand, and what they are called. No DOM: tested by node.

import {digits} from "./format.js";

/** Round steps (1, 2, 5 times a power of ten) inside [low, high], about `wanted` of them. */
export function linearTicks(low, high, wanted) {
	if (!(high > low) || !Number.isFinite(high - low))
		return [];
	const raw = (high - low) / Math.max(1, wanted);
	const power = 10 ** Math.floor(Math.log10(raw));
	const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
	const ticks = [];
	for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
		ticks.push(i * step + 0); // no -0
	return ticks;
}

/** Powers of ten inside [low, high], every n-th if there were too many, and 2 and 5 between them if there are few. */
export function logTicks(low, high, wanted) {
	if (!(low > 0) || !(high > low) || high === Infinity)
		return [];
	const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
	const decades = last - first + 1;
	const factors = decades * 3 <= wanted + 1 ? [1, 2, 5] : [1];
	const every = Math.max(1, Math.ceil(decades / Math.max(1, wanted)));
	const ticks = [];
	for (let power = first - 1; power <= last; power++)
		for (const factor of factors) {
			const value = factor * 10 ** power;
			if (value >= low * 0.999 && value <= high * 1.001 && (factors.length > 1 || (power - first) % every === 0))
				ticks.push(value);
		}
	return ticks;
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

/** Full seconds, minutes or hours of [low, high], times in seconds. */
export function timeTicks(low, high, wanted) {
	const step = SECONDS.find((size) => (high - low) / size <= wanted) ?? SECONDS.at(-1);
	const ticks = [];
	for (let i = Math.ceil(low / step); i * step <= high; i++)
		ticks.push(i * step);
	return ticks;
}

/** The upper end of an axis that begins at 0: a round number that leaves a little room. */
export function roundUp(value) {
	if (!(value > 0))
		return 1;
	const power = 10 ** Math.floor(Math.log10(value));
	return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= value * 1.02) * power || 10 * power;
}

/** A linear or logarithmic map of [low, high] onto [from, to]. */
export function scale(low, high, from, to, log = false) {
	const value = log ? (v) => Math.log(Math.max(v, 1e-300)) : (v) => v;
	const a = value(low), k = (to - from) / (value(high) - a || 1);
	const map = (v) => from + (value(v) - a) * k;
	map.invert = (p) => (log ? Math.exp(a + (p - from) / k) : a + (p - from) / k);
	return map;
}

/** A tick without needless zeros: 0.050 is "0.05", 1500 is "1500". */
export function tickText(value) {
	if (value === 0)
		return "0";
	const size = Math.abs(value);
	if (size >= 1e6 || size < 1e-4)
		return value.toExponential(0).replace("e+", "e");
	return size >= 100 ? String(Math.round(value)) : String(Number(digits(value)));
}

/** Index of the element of a rising list that is nearest to value; -1 of an empty list. */
export function nearest(list, value) {
	let low = 0, high = list.length - 1;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (list[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && Math.abs(list[low - 1] - value) <= Math.abs(list[low] - value) ? low - 1 : list.length ? low : -1;
}
