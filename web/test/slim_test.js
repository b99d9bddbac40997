import assert from "node:assert/strict";
import {test} from "node:test";

import {SlimError, parseSlim, valueAt} from "../slim.js";

/** A container; header may be an object, or bytes as they are. */
function container(header, pixels, {magic = "SLIM", length} = {}) {
	const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
	const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
	const head = Buffer.alloc(8);
	head.write(magic, 0, "latin1");
	head.writeUInt32LE(length ?? padded.length, 4);
	const all = Buffer.concat([head, padded, Buffer.from(pixels.buffer, pixels.byteOffset, pixels.byteLength)]);
	return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}

const HEADER = {type: "<i2", rows: 2, columns: 3, full_rows: 8, full_columns: 12, x: 4, y: 2, bin: 2, invalid: -32768, peaks: [[3, 5, 10]]};

test("an image comes out as it went in", () => {
	const {header, pixels} = parseSlim(container(HEADER, Int16Array.of(1, 2, -32768, 4, 5, 6)));
	assert.deepEqual([...pixels], [1, 2, -32768, 4, 5, 6]);
	assert.deepEqual([header.rows, header.columns, header.bin, header.peaks.length, header.rings.length], [2, 3, 2, 1, 0]);
});

test("pixels of every type", () => {
	for (const [type, Type] of [["|u1", Uint8Array], ["|i1", Int8Array], ["<u2", Uint16Array], ["<i4", Int32Array], ["<u4", Uint32Array], ["<f4", Float32Array], ["<f8", Float64Array]]) {
		const {pixels} = parseSlim(container({...HEADER, type}, Type.of(1, 2, 3, 4, 5, 6)));
		assert.ok(pixels instanceof Type);
		assert.deepEqual([...pixels], [1, 2, 3, 4, 5, 6]);
	}
});

test("pixels that do not begin where their type wants it", () => {
	const odd = parseSlim(container(JSON.stringify(HEADER) + " ".repeat(8 - (JSON.stringify(HEADER).length % 8)), Int16Array.of(1, 2, 3, 4, 5, 6)));
	assert.equal(odd.pixels[5], 6);
	const text = JSON.stringify({...HEADER, type: "<f8"});
	const buffer = Buffer.concat([Buffer.from("SLIM"), Buffer.alloc(4), Buffer.from(text), Buffer.from(Float64Array.of(1, 2, 3, 4, 5, 6.5).buffer)]);
	buffer.writeUInt32LE(text.length, 4);
	assert.equal(parseSlim(buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.length)).pixels[5], 6.5);
});

test("a header that leaves out what can be known", () => {
	const {header} = parseSlim(container({type: "|u1", rows: 2, columns: 3}, Uint8Array.of(1, 2, 3, 4, 5, 6)));
	assert.deepEqual([header.x, header.y, header.bin, header.full_rows, header.full_columns], [0, 0, 1, 2, 3]);
});

test("what is no image is refused with a reason", () => {
	const pixels = Int16Array.of(1, 2, 3, 4, 5, 6);
	const refused = (buffer, why) => assert.throws(() => parseSlim(buffer), (error) => error instanceof SlimError && why.test(error.message));
	refused(new ArrayBuffer(7), /shorter than its head/);
	refused(container(HEADER, pixels, {magic: "SLAM"}), /does not begin with SLIM/);
	refused(container(HEADER, pixels, {length: 0x7fffffff}), /header of/);
	refused(container("{", pixels), /no JSON/);
	refused(container("\xff\xfe", pixels), /no JSON/);
	refused(container("[]", pixels), /no JSON object/);
	refused(container("null", pixels), /no JSON object/);
	refused(container({...HEADER, type: "<c8"}, pixels), /type "<c8"/);
	refused(container({...HEADER, type: "toString"}, pixels), /type "toString"/);
	for (const rows of [0, -1, 1.5, "2", 1e9, null])
		refused(container({...HEADER, rows}, pixels), /rows is/);
	refused(container({...HEADER, bin: 0}, pixels), /bin is/);
	refused(container({...HEADER, x: -4}, pixels), /x is/);
	refused(container(HEADER, pixels.subarray(1)), /10 bytes of pixels, not 12/);
	refused(container({...HEADER, rows: 60000, columns: 60000}, pixels), /bytes of pixels/);
});

test("bytes at random never break the parser, and are never an image", () => {
	let state = 12345;
	const random = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
	const good = new Uint8Array(container(HEADER, Int16Array.of(1, 2, 3, 4, 5, 6)));
	for (let i = 0; i < 3000; i++) {
		const bytes = good.slice(0, Math.floor(random() * (good.length + 1)));
		for (let k = 0; k < 4 && bytes.length; k++)
			bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
		try {
			const {header, pixels} = parseSlim(bytes.buffer);
			assert.equal(pixels.length, header.rows * header.columns);
		} catch (error) {
			assert.ok(error instanceof SlimError, error.stack);
		}
	}
});

test("the value under the pointer", () => {
	const image = parseSlim(container(HEADER, Int16Array.of(1, 2, -32768, 4, 5, 6)));
	assert.deepEqual(valueAt(image, 2.1, 4.9), {value: 1, masked: false});
	assert.deepEqual(valueAt(image, 5.9, 9.9), {value: 6, masked: false});
	assert.deepEqual(valueAt(image, 3, 8), {value: -32768, masked: true});
	assert.equal(valueAt(image, 1.9, 4), null);
	assert.equal(valueAt(image, 6, 4), null);
	assert.equal(valueAt(image, 2, 10), null);
});
