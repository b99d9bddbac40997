// overlays.js - what is drawn over an image: peaks, the beam, resolution rings, values of single pixels.

import {position} from "./colour.js";
import {css} from "./dom.js";
import {tickText} from "./scale.js";
import {toImage, toScreen} from "./viewport.js";

const NUMBERS_FROM = 34; // CSS pixels per image pixel from which values have room in it

export function drawOverlays(context, scene) {
	const {image: {header}, settings} = scene;
	if (settings.rings && header.beam)
		rings(context, scene);
	if (settings.peaks)
		peaks(context, scene);
	if (settings.beam && header.beam)
		beam(context, scene);
	if (scene.view.scale >= NUMBERS_FROM && header.bin === 1)
		numbers(context, scene);
}

/** A line that is seen on any colour below it: the colour over a dark edge. */
function stroke(context, colour, width) {
	context.strokeStyle = "rgba(0, 0, 0, .55)";
	context.lineWidth = width + 1.6;
	context.stroke();
	context.strokeStyle = colour;
	context.lineWidth = width;
	context.stroke();
}

function label(context, words, x, y, colour) {
	context.lineJoin = "round";
	context.strokeStyle = "rgba(0, 0, 0, .65)";
	context.lineWidth = 3;
	context.strokeText(words, x, y);
	context.fillStyle = colour;
	context.fillText(words, x, y);
}

function rings(context, {image: {header}, view, window}) {
	const middle = toScreen(view, window, header.beam.row, header.beam.column);
	const colour = css("--ring");
	context.font = `600 11px ${css("--font")}`;
	context.textAlign = "center";
	context.textBaseline = "middle";
	for (const {d_A: d, radius_pixels: pixels, points} of header.rings) {
		const radius = pixels * view.scale;
		context.setLineDash([6, 5]);
		context.beginPath();
		if (points)
			outline(context, points.map((point) => point && toScreen(view, window, ...point)));
		else
			context.arc(middle.x, middle.y, radius, 0, 2 * Math.PI);
		stroke(context, colour, 1.1);
		context.setLineDash([]);
		const place = [-0.79, 0.79, 2.36, -2.36, -1.57, 0, 1.57, 3.14].map((angle) => [middle.x + radius * Math.cos(angle), middle.y + radius * Math.sin(angle)])
			.find(([x, y]) => x > 24 && y > 10 && x < window.width - 24 && y < window.height - 10);
		if (place)
			label(context, `${tickText(d)} \u00c5`, ...place, colour);
	}
}

/** A ring of a detector that is not square to the beam: no circle; where it leaves the plane there is no point. */
function outline(context, points) {
	const closed = points.every(Boolean) ? [...points, points[0]] : points;
	closed.forEach((point, i) => point && (closed[i - 1] ? context.lineTo(point.x, point.y) : context.moveTo(point.x, point.y)));
}

function beam(context, {image: {header}, view, window}) {
	const {x, y} = toScreen(view, window, header.beam.row, header.beam.column);
	context.beginPath();
	for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
		context.moveTo(x + dx * 3, y + dy * 3);
		context.lineTo(x + dx * 11, y + dy * 11);
	}
	stroke(context, css("--beam"), 1.6);
}

function peaks(context, {image: {header}, view, window}) {
	const radius = Math.max(5, Math.min(40, 3.5 * view.scale));
	context.beginPath();
	for (const [row, column] of header.peaks) {
		const {x, y} = toScreen(view, window, row, column);
		if (x < -radius || y < -radius || x > window.width + radius || y > window.height + radius)
			continue;
		context.moveTo(x + radius, y);
		context.arc(x, y, radius, 0, 2 * Math.PI);
	}
	stroke(context, css("--peak"), 1.3);
}

function numbers(context, {image: {header, pixels}, view, window, shown}) {
	const from = toImage(view, window, 0, 0), to = toImage(view, window, window.width, window.height);
	context.font = `${Math.min(13, view.scale / 3.2)}px ${css("--mono")}`;
	context.textAlign = "center";
	context.textBaseline = "middle";
	for (let row = Math.max(header.y, Math.floor(from.row)); row < Math.min(header.y + header.rows, to.row); row++)
		for (let column = Math.max(header.x, Math.floor(from.column)); column < Math.min(header.x + header.columns, to.column); column++) {
			const value = pixels[(row - header.y) * header.columns + column - header.x];
			if (value === header.invalid || value !== value)
				continue;
			const {x, y} = toScreen(view, window, row + 0.5, column + 0.5);
			const bright = position(value, shown) > 0.6 !== shown.map.endsWith("inverted");
			context.fillStyle = bright ? "#000" : "#fff";
			context.fillText(tickText(value), x, y);
		}
}
