// slim.js - one image as the service sends it: "SLIM", u32 length of a JSON header, the header, pixels. No DOM: tested by node.

const LARGEST_HEADER = 1 << 20, LARGEST_SIDE = 1 << 16;
const TYPES = {
	"|u1": Uint8Array, "<u1": Uint8Array, "|i1": Int8Array, "<i1": Int8Array, "<u2": Uint16Array, "<i2": Int16Array,
	"<u4": Uint32Array, "<i4": Int32Array, "<f4": Float32Array, "<f8": Float64Array,
};

export class SlimError extends Error {}

function whole(header, name, least, most) {
	const value = header[name];
	if (!Number.isInteger(value) || value < least || value > most)
		throw new SlimError(`image header: ${name} is ${JSON.stringify(value)}, not a whole number from ${least} to ${most}`);
	return value;
}

function readHeader(buffer) {
	if (buffer.byteLength < 8)
		throw new SlimError(`image of ${buffer.byteLength} bytes: shorter than its head`);
	const view = new DataView(buffer);
	if (view.getUint32(0) !== 0x534c494d)
		throw new SlimError("image does not begin with SLIM");
	const bytes = view.getUint32(4, true);
	if (bytes > LARGEST_HEADER || bytes > buffer.byteLength - 8)
		throw new SlimError(`image header of ${bytes} bytes in a body of ${buffer.byteLength}`);
	let header;
	try {
		header = JSON.parse(new TextDecoder("utf-8", {fatal: true}).decode(new Uint8Array(buffer, 8, bytes)));
	} catch (error) {
		throw new SlimError(`image header is no JSON: ${error.message}`);
	}
	if (header === null || typeof header !== "object" || Array.isArray(header))
		throw new SlimError("image header is no JSON object");
	return [header, 8 + bytes];
}

/** {header, pixels} of an ArrayBuffer; throws SlimError. Lists that the header lacks are empty. */
export function parseSlim(buffer) {
	const [header, start] = readHeader(buffer);
	const Type = TYPES[header.type];
	if (!Object.hasOwn(TYPES, header.type))
		throw new SlimError(`image header: type ${JSON.stringify(header.type)} is not known here`);
	const rows = whole(header, "rows", 1, LARGEST_SIDE), columns = whole(header, "columns", 1, LARGEST_SIDE);
	const bin = header.bin === undefined ? (header.bin = 1) : whole(header, "bin", 1, LARGEST_SIDE);
	header.x = header.x === undefined ? 0 : whole(header, "x", 0, LARGEST_SIDE);
	header.y = header.y === undefined ? 0 : whole(header, "y", 0, LARGEST_SIDE);
	header.full_rows ??= header.y + rows * bin;
	header.full_columns ??= header.x + columns * bin;
	whole(header, "full_rows", 1, LARGEST_SIDE);
	whole(header, "full_columns", 1, LARGEST_SIDE);
	const bytes = rows * columns * Type.BYTES_PER_ELEMENT;
	if (buffer.byteLength - start < bytes)
		throw new SlimError(`image of ${rows} x ${columns} ${header.type}: ${buffer.byteLength - start} bytes of pixels, not ${bytes}`);
	header.peaks = Array.isArray(header.peaks) ? header.peaks : [];
	header.rings = Array.isArray(header.rings) ? header.rings : [];
	const pixels = start % Type.BYTES_PER_ELEMENT ? new Type(buffer.slice(start, start + bytes)) : new Type(buffer, start, rows * columns);
	return {header, pixels};
}

/** The value at a pixel of the whole image: {value, masked}, or null where this part does not have it. */
export function valueAt({header, pixels}, row, column) {
	const r = Math.floor((row - header.y) / header.bin), c = Math.floor((column - header.x) / header.bin);
	if (r < 0 || c < 0 || r >= header.rows || c >= header.columns || row < 0 || column < 0)
		return null;
	const value = pixels[r * header.columns + c];
	return {value, masked: value === header.invalid || Number.isNaN(value)};
}
