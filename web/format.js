// format.js - numbers, sizes, times and durations as people read them. No DOM: tested by node.

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

/** Three significant digits, without an exponent. */
export function digits(value) {
	const size = Math.abs(Number(value.toPrecision(3)));
	if (size === 0)
		return "0";
	return value.toFixed(Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(size)))));
}

/** A bound or another number that has to be exact: "1,000,000,000,000", "0.01". */
export function exact(value) {
	return Number.isFinite(value) ? new Intl.NumberFormat("en", {maximumSignificantDigits: 15}).format(value) : "\u2013";
}

/** 12,345 */
export function count(value) {
	return Number.isFinite(value) ? whole.format(value) : "\u2013";
}

/** [number, unit with its prefix]: 1234567, "B/s" is ["1.23", "MB/s"]. */
export function scaled(value, unit = "") {
	if (!Number.isFinite(value))
		return ["\u2013", unit];
	for (const [size, prefix] of PREFIXES)
		if (Math.abs(value) >= size * 0.9995)
			return [digits(value / size), prefix + unit];
	return [Math.abs(value) >= 100 ? value.toFixed(0) : digits(value), unit];
}

export function quantity(value, unit = "") {
	return scaled(value, unit).join("\u00a0").trim();
}

const DURATIONS = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];

/** A duration of nanoseconds to three digits: "934 µs". */
export function nanoseconds(value) {
	if (!Number.isFinite(value))
		return "\u2013";
	if (value === 0)
		return "0 s";
	const [size, unit] = DURATIONS.find(([size]) => value >= size * 0.9995) ?? DURATIONS.at(-1);
	return `${digits(value / size)}\u00a0${unit}`;
}

/** The same for the mark of an axis: 2.00 GB/s is "2 GB/s". */
export function mark(words) {
	return words.replace(/\.0+(?=\D|$)|(\.\d*[1-9])0+(?=\D|$)/, "$1");
}

/** A duration that people wait for: "0.4 s", "12 s", "3 min 20 s", "2 h 05 min", "4 d 3 h". */
export function duration(seconds) {
	if (!Number.isFinite(seconds))
		return "\u2013";
	const s = Math.max(0, seconds);
	if (s < 9.95)
		return `${s.toFixed(1)} s`;
	const n = Math.round(s);
	if (n < 60)
		return `${n} s`;
	if (n < 3600)
		return `${Math.floor(n / 60)} min ${String(n % 60).padStart(2, "0")} s`;
	if (n < 86400)
		return `${Math.floor(n / 3600)} h ${String(Math.floor((n % 3600) / 60)).padStart(2, "0")} min`;
	return `${Math.floor(n / 86400)} d ${Math.floor((n % 86400) / 3600)} h`;
}

/** A share as per cent; a share that is not 0 never reads 0 %, one that is not all never reads 100 %. */
export function percent(part, all) {
	if (!all || !Number.isFinite(part))
		return "\u2013";
	const value = (100 * part) / all;
	if (value > 0 && value < 0.01)
		return "<0.01\u00a0%";
	if (value > 99.9 && value < 100)
		return ">99.9\u00a0%";
	return `${value < 1 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0)}\u00a0%`;
}

/** The time of day, here: "14:03:22". */
export function clock(milliseconds) {
	return new Date(milliseconds).toLocaleTimeString("en-GB");
}

/** Day and time: "today 14:03", "19 Nov 14:03", "19 Nov 2025 14:03". */
export function moment(milliseconds, now = Date.now()) {
	if (!Number.isFinite(milliseconds))
		return "\u2013";
	const date = new Date(milliseconds), today = new Date(now);
	const time = date.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});
	if (date.toDateString() === today.toDateString())
		return `today ${time}`;
	const year = date.getFullYear() === today.getFullYear() ? undefined : "numeric";
	return `${date.toLocaleDateString("en-GB", {day: "numeric", month: "short", year})} ${time}`;
}

// Marks that turn the direction of a text around, and control characters.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text in which every character is seen: marks that would turn it around or hide a part of it are written as "<U+202E>". */
export function visible(value) {
	return String(value).replace(HIDDEN, (mark) => `<U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

/** What there is of some notes, with dots between them. */
export const dotted = (...notes) => notes.filter(Boolean).join(" \u00b7 ");

/** The name of a file without its folders; of nothing "". */
export const fileName = (path) => String(path ?? "").split("/").pop();

/** As a sentence: "nothing arrived" is "Nothing arrived." */
export const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1) + (words.endsWith(".") ? "" : ".");

/** "1 frame", "2 frames" */
export function plural(number, noun) {
	return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
