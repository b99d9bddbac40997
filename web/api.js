// api.js - calls of the service, with the token of this tab, and its stream of events. A call throws ApiError; a call that gets no
// answer throws one with status 0.

const PREFIX = "api/v1", KEY = "sluice-token";

export class ApiError extends Error {
	constructor(status, {code = "", message = "", where = null, hint = null} = {}, errors = []) {
		super(message || `the service answered ${status}`);
		Object.assign(this, {status, code, where, hint, errors});
	}
}

/** Called when the service wants a token, or refuses the one it got. */
export const listeners = {unauthorized: () => {}};

export function setToken(token) {
	if (token)
		sessionStorage.setItem(KEY, token);
	else
		sessionStorage.removeItem(KEY);
}

export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

function headers(more = {}) {
	const token = sessionStorage.getItem(KEY);
	return token ? {...more, Authorization: `Bearer ${token}`} : more;
}

async function failure(response) {
	let body = {};
	try {
		body = await response.json();
	} catch {
		// an answer of something between us and the service: its status has to do
	}
	if (response.status === 401)
		listeners.unauthorized();
	return new ApiError(response.status, body.error ?? {}, body.errors ?? body.error?.errors ?? []);
}

async function call(method, path, {body, type = "application/json", signal} = {}) {
	let response;
	try {
		response = await fetch(path ? `${PREFIX}/${path}` : PREFIX, {method, signal, cache: "no-store", credentials: "omit", body: body === undefined ? undefined : body,
			headers: headers(body === undefined ? {} : {"Content-Type": type})});
	} catch (error) {
		if (error.name === "AbortError")
			throw error;
		throw new ApiError(0, {code: "unreachable", message: "the service does not answer"});
	}
	if (!response.ok)
		throw await failure(response);
	return response;
}

const json = async (response) => (response.status === 204 ? null : response.json());

export const get = async (path, options) => json(await call("GET", path, options));
export const post = async (path, body = {}) => json(await call("POST", path, {body: JSON.stringify(body)}));
export const remove = async (path) => json(await call("DELETE", path));
export const textOf = async (path) => (await call("GET", path)).text();
export const blobOf = async (path) => (await call("GET", path)).blob();

/** The path of a session, or of one of its parts. */
export const session = (name, part = "") => `sessions/${encodeURIComponent(name)}${part && `/${part}`}`;

/** The body of a binary answer, or null: there is nothing newer. */
export async function bytesOf(path, signal) {
	const response = await call("GET", path, {signal});
	return response.status === 204 ? null : response.arrayBuffer();
}

/** Parses a stream of Server-Sent Events that comes in pieces: feed() calls on(event, data). No DOM: tested by node. */
export class EventParser {
	constructor(on) {
		this.on = on;
		this.rest = "";
		this.clear();
	}

	clear() {
		this.event = "message";
		this.data = [];
	}

	feed(piece) {
		const lines = (this.rest + piece).split(/\r\n|\n|\r(?!$)/);
		this.rest = lines.pop();
		for (const line of lines)
			this.line(line);
	}

	line(line) {
		if (line === "") {
			if (this.data.length)
				this.on(this.event, this.data.join("\n"));
			this.clear();
			return;
		}
		const colon = line.indexOf(":");
		if (colon === 0)
			return; // a comment
		const field = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
		if (field === "event")
			this.event = value;
		else if (field === "data")
			this.data.push(value);
	}
}

/** Read events until the stream ends or signal says so. on(event, object) for each; alive() for each piece that comes, comments, too. */
export async function events(path, {on, alive, signal}) {
	const response = await call("GET", path, {signal});
	const parser = new EventParser((event, data) => {
		let value;
		try {
			value = JSON.parse(data);
		} catch {
			return; // cut off by a service that was killed: the next list has it all
		}
		on(event, value);
	});
	alive();
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	for (;;) {
		const {done, value} = await reader.read();
		if (done)
			return;
		alive();
		parser.feed(value);
	}
}
