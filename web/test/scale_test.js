import assert from "node:assert/strict";
import {test} from "node:test";

import {count, digits, dotted, duration, fileName, mark, moment, nanoseconds, percent, plural, quantity} from "../format.js";
import {linearTicks, logTicks, nearest, roundUp, scale, tickText, timeTicks} from "../scale.js";

test("ticks are round, inside, and about as many as wanted", () => {
	assert.deepEqual(linearTicks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
	assert.deepEqual(linearTicks(0, 1.2, 3), [0, 0.5, 1]);
	for (const [low, high] of [[0, 7e-9], [-3, 4], [1e6, 1.00001e6], [0, 1e15]])
		for (const wanted of [1, 3, 8]) {
			const ticks = linearTicks(low, high, wanted), room = (high - low) * 1e-6;
			assert.ok(ticks.length <= wanted + 1 && ticks.every((tick) => tick >= low - room && tick <= high + room), `${low} ${high} ${ticks}`);
		}
});

test("axes without an extent have no ticks, and never an endless list", () => {
	for (const [low, high] of [[0, 0], [5, 3], [0, Infinity], [NaN, 1], [-Infinity, 2]]) {
		assert.deepEqual(linearTicks(low, high, 4), []);
		assert.deepEqual(logTicks(low, high, 4), []);
	}
	assert.deepEqual(logTicks(1, Infinity, 4), []);
	assert.deepEqual(logTicks(-1, 10, 4), []);
});

test("logarithmic ticks", () => {
	assert.deepEqual(logTicks(1e3, 1e6, 4), [1e3, 1e4, 1e5, 1e6]);
	assert.deepEqual(logTicks(1, 10, 5), [1, 2, 5, 10]);
	assert.equal(logTicks(1, 1e12, 4).length, 4);
});

test("ticks of time are full seconds and minutes", () => {
	assert.deepEqual(timeTicks(100.5, 130.2, 4), [110, 120, 130]);
	assert.deepEqual(timeTicks(0, 3600, 4), [0, 900, 1800, 2700, 3600]);
});

test("an axis ends above its largest value", () => {
	for (const value of [1e-9, 0.3, 0.98, 1, 7, 99, 101, 123456, 8e14])
		assert.ok(roundUp(value) > value && roundUp(value) <= value * 1.6, `${value}: ${roundUp(value)}`);
	for (const value of [0, -1, NaN, -Infinity])
		assert.equal(roundUp(value), 1);
});

test("a scale and its inverse", () => {
	for (const log of [false, true]) {
		const map = scale(10, 1e5, 300, 20, log);
		assert.ok(Math.abs(map(10) - 300) < 1e-9 && Math.abs(map(1e5) - 20) < 1e-9);
		assert.ok(Math.abs(map.invert(map(1234)) - 1234) < 1e-6);
	}
});

test("the nearest of a list", () => {
	assert.equal(nearest([], 3), -1);
	assert.equal(nearest([1, 5, 9], 6.9), 1);
	assert.equal(nearest([1, 5, 9], 7.1), 2);
	assert.equal(nearest([1, 5, 9], -4), 0);
	assert.equal(nearest([1, 5, 9], 99), 2);
});

test("numbers as people read them", () => {
	const plain = (text) => text.replaceAll("\u00a0", " ");
	assert.equal(count(1234567), "1,234,567");
	assert.equal(count(NaN), "\u2013");
	assert.deepEqual([digits(0), digits(1.2345), digits(12.345), digits(123.45), digits(0.0123)], ["0", "1.23", "12.3", "123", "0.0123"]);
	assert.deepEqual([1.234e9, 999.9e6, 512, 0, NaN].map((value) => plain(quantity(value, "B/s"))), ["1.23 GB/s", "1.00 GB/s", "512 B/s", "0 B/s", "\u2013 B/s"]);
	assert.deepEqual([0, 999, 1500, 2.5e6, 3e9].map((value) => plain(nanoseconds(value))), ["0 s", "999 ns", "1.50 \u00b5s", "2.50 ms", "3.00 s"]);
	assert.deepEqual(["2.00 GB/s", "1.50 ms", "10.0 %", "500", "0.050"].map(mark), ["2 GB/s", "1.5 ms", "10 %", "500", "0.05"]);
	assert.deepEqual([0.04, 9.94, 12, 200, 7500, 3e5].map(duration), ["0.0 s", "9.9 s", "12 s", "3 min 20 s", "2 h 05 min", "3 d 11 h"]);
	assert.deepEqual([[1, 1e6], [999999, 1e6], [1, 1], [0, 7], [3, 0], [1, 8]].map(([part, all]) => plain(percent(part, all))), ["<0.01 %", ">99.9 %", "100 %", "0.00 %", "\u2013", "12.5 %"]);
	assert.deepEqual([0, 0.05, 1500, 1e7, 2.5].map(tickText), ["0", "0.05", "1500", "1e7", "2.5"]);
	assert.deepEqual([plural(1, "frame"), plural(0, "frame"), plural(2000, "frame")], ["1 frame", "0 frames", "2,000 frames"]);
	assert.equal(dotted("a", "", null, 0, false, "b"), "a \u00b7 b");
	assert.deepEqual(["/a/b/c.yaml", "c.yaml", null, undefined].map(fileName), ["c.yaml", "c.yaml", "", ""]);
});

test("moments", () => {
	const now = new Date(2026, 10, 19, 20, 0).getTime();
	assert.equal(moment(new Date(2026, 10, 19, 14, 3).getTime(), now), "today 14:03");
	assert.match(moment(new Date(2026, 0, 2, 4, 5).getTime(), now), /^2 Jan 04:05$/);
	assert.match(moment(new Date(2025, 10, 19, 14, 3).getTime(), now), /2025/);
	assert.equal(moment(NaN), "\u2013");
});
