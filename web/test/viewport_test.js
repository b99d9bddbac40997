import assert from "node:assert/strict";
import {test} from "node:test";

import {binFor, clamp, fit, isFit, pan, region, serves, toImage, toScreen, zoomAt} from "../viewport.js";

const IMAGE = {rows: 2164, columns: 2068}, WINDOW = {width: 800, height: 600};

test("a fitted image touches the narrower sides, in the middle", () => {
	const view = fit(WINDOW, IMAGE);
	assert.equal(view.scale, 600 / 2164);
	assert.deepEqual(toScreen(view, WINDOW, 1082, 1034), {x: 400, y: 300});
	assert.ok(isFit(view, WINDOW, IMAGE));
});

test("screen and image are each other's inverse", () => {
	const view = {row: 300, column: 700, scale: 3.3};
	const {row, column} = toImage(view, WINDOW, 123, 456), back = toScreen(view, WINDOW, row, column);
	assert.ok(Math.abs(back.x - 123) < 1e-9 && Math.abs(back.y - 456) < 1e-9);
});

test("zooming keeps the point under the pointer", () => {
	let view = zoomAt(fit(WINDOW, IMAGE), WINDOW, IMAGE, 20, 400, 300);
	const before = toImage(view, WINDOW, 250, 120);
	view = zoomAt(view, WINDOW, IMAGE, 1.7, 250, 120);
	const after = toImage(view, WINDOW, 250, 120);
	assert.ok(Math.abs(before.row - after.row) < 1e-9 && Math.abs(before.column - after.column) < 1e-9);
	assert.ok(!isFit(view, WINDOW, IMAGE));
});

test("no zoom and no pan leaves the image", () => {
	let view = fit(WINDOW, IMAGE);
	for (let i = 0; i < 100; i++)
		view = zoomAt(view, WINDOW, IMAGE, i % 3 ? 1.5 : 0.4, (i * 97) % 800, (i * 61) % 600);
	view = pan(view, WINDOW, IMAGE, 1e6, -1e6);
	assert.ok(view.scale <= 64 && view.scale >= fit(WINDOW, IMAGE).scale * 0.5 - 1e-12);
	const half = {rows: WINDOW.height / view.scale / 2, columns: WINDOW.width / view.scale / 2};
	assert.ok(view.row + half.rows <= IMAGE.rows + 1e-6 || view.row === IMAGE.rows / 2);
	assert.ok(view.column - half.columns >= -1e-6 || view.column === IMAGE.columns / 2);
	assert.deepEqual(clamp({row: -50, column: 1e9, scale: 8}, WINDOW, IMAGE), {row: 37.5, column: 2068 - 50, scale: 8});
});

test("what is asked for is in whole bins, inside the image, and no more than the window shows", () => {
	let tried = 0;
	for (const window of [WINDOW, {width: 390, height: 367}, {width: 1900, height: 700}])
		for (const image of [IMAGE, {rows: 1064, columns: 1030}, {rows: 1, columns: 5000}, {rows: 7, columns: 3}])
			for (const ratio of [1, 1.5, 2])
				for (const factor of [0.5, 1, 1.3, 4, 37, 400]) {
					const view = zoomAt(fit(window, image), window, image, factor, window.width / 3, window.height / 5);
					const part = region(view, window, image, ratio);
					assert.ok(part.x >= 0 && part.y >= 0 && part.x + part.width <= image.columns && part.y + part.height <= image.rows, JSON.stringify(part));
					assert.ok(part.width >= 1 && part.height >= 1 && part.x % part.bin === 0 && part.y % part.bin === 0);
					const most = (size) => size * ratio * 1.2 * 1.1 + 3;
					assert.ok(part.width / part.bin <= most(window.width) && part.height / part.bin <= most(window.height), JSON.stringify([view, part]));
					assert.ok(serves(part, view, window, image, ratio), "what was asked for serves");
					tried++;
				}
	assert.equal(tried, 3 * 4 * 3 * 6);
});

test("full resolution once a pixel of the image is a pixel of the screen", () => {
	assert.equal(binFor({scale: 1}, 1), 1);
	assert.equal(binFor({scale: 0.5}, 2), 1);
	assert.equal(binFor({scale: 0.5}, 1), 2);
	assert.equal(binFor({scale: 0.28}, 1), 4);
});

test("zooming in asks for a finer part, a small pan does not", () => {
	const view = fit(WINDOW, IMAGE), part = region(view, WINDOW, IMAGE, 1);
	const near = zoomAt(view, WINDOW, IMAGE, 6, 400, 300);
	assert.ok(!serves(part, near, WINDOW, IMAGE, 1));
	const finer = region(near, WINDOW, IMAGE, 1);
	assert.equal(finer.bin, 1);
	assert.ok(serves(finer, pan(near, WINDOW, IMAGE, 30, -20), WINDOW, IMAGE, 1));
	assert.ok(!serves(finer, pan(near, WINDOW, IMAGE, 300, 0), WINDOW, IMAGE, 1));
	assert.ok(!serves(finer, view, WINDOW, IMAGE, 1), "much finer than what is seen: too many pixels");
});
