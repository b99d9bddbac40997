// viewport.js - what part of an image is seen, at which scale, and what has to be asked of the service for it. No DOM: tested by node.
//
// Model: a view is {row, column, scale}: the point of the image in the middle of the window, and CSS pixels per image pixel.
//        A window is {width, height} in CSS pixels. An image is {rows, columns}. Points: column to the right, row downwards.

const MOST_SCALE = 64, LEAST_PART = 0.5; // of the fitted scale

export function fit(window, image) {
	const scale = Math.min(window.width / image.columns, window.height / image.rows);
	return {row: image.rows / 2, column: image.columns / 2, scale: Math.min(scale, MOST_SCALE)};
}

/** Whether the whole image is seen. */
export function isFit(view, window, image) {
	return view.scale <= fit(window, image).scale * 1.001;
}

export function toScreen(view, window, row, column) {
	return {x: window.width / 2 + (column - view.column) * view.scale, y: window.height / 2 + (row - view.row) * view.scale};
}

export function toImage(view, window, x, y) {
	return {row: view.row + (y - window.height / 2) / view.scale, column: view.column + (x - window.width / 2) / view.scale};
}

/** Bounds of the scale kept, and the image in the window: no view shows nothing. */
export function clamp(view, window, image) {
	const fitted = fit(window, image);
	const scale = Math.min(MOST_SCALE, Math.max(fitted.scale * LEAST_PART, view.scale));
	const between = (value, size, shown) => (shown >= size ? size / 2 : Math.min(size - shown / 2, Math.max(shown / 2, value)));
	return {row: between(view.row, image.rows, window.height / scale), column: between(view.column, image.columns, window.width / scale), scale};
}

/** Zoom by a factor; the point under (x, y) stays there, unless the image would leave the window. */
export function zoomAt(view, window, image, factor, x, y) {
	const point = toImage(view, window, x, y);
	const scale = Math.min(MOST_SCALE, Math.max(fit(window, image).scale * LEAST_PART, view.scale * factor));
	const moved = {scale, row: point.row - (y - window.height / 2) / scale, column: point.column - (x - window.width / 2) / scale};
	return clamp(moved, window, image);
}

export function pan(view, window, image, dx, dy) {
	return clamp({...view, row: view.row - dy / view.scale, column: view.column - dx / view.scale}, window, image);
}

/** Image pixels that one number of the answer stands for in each direction: at least one device pixel. */
export function binFor(view, ratio) {
	return Math.max(1, Math.ceil(1 / (view.scale * ratio) - 0.05));
}

/** The part of the image to ask for, {x, y, width, height, bin}: what is seen and a margin, in whole bins. */
export function region(view, window, image, ratio, margin = 0.1) {
	const bin = binFor(view, ratio);
	const span = (middle, shown, size) => {
		const half = (shown / view.scale) * (0.5 + margin);
		const from = Math.floor(Math.max(0, middle - half) / bin) * bin;
		const to = Math.min(size, Math.ceil(Math.min(size, middle + half) / bin) * bin);
		return [from, Math.max(1, to - from)];
	};
	const [x, width] = span(view.column, window.width, image.columns);
	const [y, height] = span(view.row, window.height, image.rows);
	return {x, y, width, height, bin};
}

/** Whether the answer to an earlier request has all that is seen, as fine as it can be shown and not much finer than that. */
export function serves(request, view, window, image, ratio) {
	const wanted = region(view, window, image, ratio, 0);
	return request.bin <= wanted.bin && request.bin * 2 > wanted.bin && request.x <= wanted.x && request.y <= wanted.y &&
		request.x + request.width >= wanted.x + wanted.width && request.y + request.height >= wanted.y + wanted.height;
}
