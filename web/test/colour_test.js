import assert from "node:assert/strict";
import {test} from "node:test";

import {histogram, limits, mapNames, paint, percentile, position, sample, steps, valueOf} from "../colour.js";

const bytes = (word) => [word & 255, (word >> 8) & 255, (word >> 16) & 255, word >>> 24];

test("maps go from their first colour to their last", () => {
	for (const name of mapNames) {
		const colours = steps(name);
		assert.equal(colours.length, 256);
		assert.ok(colours.every((word) => word >>> 24 === 255), "opaque");
	}
	assert.deepEqual(bytes(steps("grey")[0]), [0, 0, 0, 255]);
	assert.deepEqual(bytes(steps("grey")[255]), [255, 255, 255, 255]);
	assert.deepEqual(bytes(steps("viridis")[0]), [0x44, 0x01, 0x54, 255]);
});

test("position and value are each other's inverse", () => {
	for (const shown of [{low: 0, high: 100, log: false}, {low: 0, high: 100, log: true}, {low: -5, high: 3000, log: true}, {low: 0, high: 0.01, log: true, fractions: true}])
		for (const place of [0, 0.1, 0.5, 0.99, 1])
			assert.ok(Math.abs(position(valueOf(place, shown), shown) - place) < 1e-9);
});

test("logarithmic colours give small values more room", () => {
	const shown = {low: 0, high: 1000, log: true};
	assert.ok(position(10, shown) > 0.3 && position(10, {...shown, log: false}) < 0.02);
	assert.equal(position(-3, shown), 0);
});

test("painting: ends, middle, beyond, masked, NaN", () => {
	const out = new Uint32Array(6);
	paint(Float32Array.of(0, 10, -50, 1e9, NaN, 5), null, {low: 0, high: 10, log: false, map: "grey"}, [1, 2, 3], out);
	assert.deepEqual([...out].map((word) => bytes(word)[0]), [0, 255, 0, 255, 1, 128]);
	paint(Int16Array.of(-32768, 10), -32768, {low: 0, high: 10, log: true, map: "grey"}, [1, 2, 3], out);
	assert.deepEqual(bytes(out[0]), [1, 2, 3, 255]);
	assert.deepEqual(bytes(out[1]), [255, 255, 255, 255]);
});

test("painting is what position says, within a step", () => {
	const values = Int32Array.from({length: 1000}, (_, i) => i * 3), out = new Uint32Array(1000);
	for (const log of [false, true]) {
		const shown = {low: 30, high: 2500, log, map: "grey"};
		paint(values, null, shown, [0, 0, 0], out);
		values.forEach((value, i) => {
			const wanted = 255 * Math.min(1, Math.max(0, position(value, shown)));
			assert.ok(Math.abs(bytes(out[i])[0] - wanted) <= 2.5, `${value}: ${bytes(out[i])[0]}, not ${wanted}`);
		});
	}
});

test("a sample has valid pixels alone, in order, of every column", () => {
	const columns = 1024, pixels = new Int16Array(columns * 1024).map((_, i) => (i % columns < 512 ? -32768 : i % columns));
	const sorted = sample(pixels, -32768, columns);
	assert.ok(sorted.length > 5000 && sorted.length <= 32768);
	assert.ok(sorted.every((value, i) => value >= 512 && (i === 0 || sorted[i - 1] <= value)));
	assert.ok(new Set(sorted).size > 400, "not always the same columns");
	assert.equal(sample(Int16Array.of(-1, -1), -1, 2).length, 0);
});

test("contrast: percentiles, all, by hand; never an empty range", () => {
	const sorted = Float64Array.from({length: 1001}, (_, i) => i);
	assert.equal(percentile(sorted, 0.5), 500);
	assert.deepEqual(limits(sorted, {range: "percentile", percentile: 99}), {low: 10, high: 990});
	assert.deepEqual(limits(sorted, {range: "full"}), {low: 0, high: 1000});
	assert.deepEqual(limits(sorted, {range: "manual", low: 3, high: 7}), {low: 3, high: 7});
	assert.deepEqual(limits(Float64Array.of(5, 5), {range: "full"}), {low: 5, high: 6});
	assert.deepEqual(limits(new Float64Array(0), {range: "percentile", percentile: 99}), {low: 0, high: 1});
});

test("a histogram counts each value once, where position puts it", () => {
	const sorted = Float64Array.from({length: 5000}, (_, i) => (i * i) / 1000).sort();
	for (const log of [false, true]) {
		const shown = {low: 5, high: 9000, log}, counts = histogram(sorted, shown, 40);
		assert.equal(counts.reduce((a, b) => a + b), 5000);
		const plain = new Uint32Array(40);
		for (const value of sorted)
			plain[Math.min(39, Math.max(0, Math.floor(position(value, shown) * 40)))]++;
		counts.forEach((n, i) => assert.ok(Math.abs(n - plain[i]) <= 1, `${log} ${i}: ${n}, not ${plain[i]}`));
	}
});
