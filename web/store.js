// store.js - what the page knows: capabilities, sessions, their statuses and histories, and whether that is still so.
//
// One stream of events feeds it. It reconnects by itself; while it cannot, `connection` says since when nothing is known.

import * as api from "./api.js";
import {History} from "./history.js";
import {allows, learn} from "./words.js";

const SILENCE_MS = 8000; // the service sends something at least every second or two
export const TOKEN = "a token is needed";
const PICTURE_MS = 2500; // after its end a run gets its picture
const RETRY_MS = [300, 1000, 2000, 4000];

class Store {
	constructor() {
		this.capabilities = null;
		this.sessions = [];
		this.listed = false; // whether the list of sessions has come
		this.before = new Map(); // what was known of sessions that are no longer there
		this.statuses = new Map();
		this.histories = new Map();
		this.connection = {state: "connecting", since: Date.now(), why: ""};
		this.heard = Date.now();
		this.listeners = new Map();
		this.attempts = 0;
	}

	/** Call on(detail) at each event: "sessions", "status", "run", "connection", "capabilities". Returns what ends it. */
	listen(event, on) {
		if (!this.listeners.has(event))
			this.listeners.set(event, new Set());
		this.listeners.get(event).add(on);
		return () => this.listeners.get(event).delete(on);
	}

	emit(event, detail) {
		for (const on of [...(this.listeners.get(event) ?? [])])
			on(detail);
	}

	role() {
		return this.capabilities?.role ?? "view";
	}

	may(role) {
		return allows(this.role(), role);
	}

	session(name) {
		return this.sessions.find((session) => session.name === name);
	}

	/** Whether a session writes its runs below the root of this service: a run of the same number elsewhere is another one. */
	ours(session) {
		const root = this.capabilities?.folders?.root;
		return Boolean(root && session?.root === root);
	}

	/** The number of a session's run in the history of this service; 0: it has none there. */
	runOf(session) {
		return this.ours(session) && session.run > 0 ? session.run : 0;
	}

	history(name) {
		if (!this.histories.has(name))
			this.histories.set(name, new History());
		return this.histories.get(name);
	}

	start() {
		this.watchdog = setInterval(() => {
			if (this.connection.state === "live" && Date.now() - this.heard > SILENCE_MS)
				this.abort?.abort();
		}, 1000);
		this.keep();
	}

	/** Begin anew: with another token, or since somebody wants it now. */
	again() {
		this.attempts = 0;
		if (this.wake)
			this.wake();
		else
			this.abort?.abort();
	}

	async keep() {
		for (;;) {
			this.abort = new AbortController();
			let why = "the stream of events ended";
			try {
				this.capabilities = await api.get("", {signal: this.abort.signal});
				learn(this.capabilities.causes);
				this.emit("capabilities", this.capabilities);
				await api.events("events?interval_ms=500", {
					signal: this.abort.signal, on: (event, data) => this.take(event, data), alive: () => this.seen(),
				});
			} catch (error) {
				why = error.name === "AbortError" ? "the service is silent" : error.message;
				if (error.status === 401)
					why = TOKEN;
			}
			this.abort.abort(); // whatever else goes on of this attempt
			this.lost(why);
			await new Promise((done) => {
				this.wake = done;
				if (why !== TOKEN) // that comes by again()
					setTimeout(done, RETRY_MS[Math.min(this.attempts++, RETRY_MS.length - 1)]);
			});
			this.wake = undefined;
		}
	}

	seen() {
		this.heard = Date.now();
		if (this.connection.state !== "live") {
			this.attempts = 0;
			this.connection = {state: "live", since: this.heard, why: ""};
			this.emit("connection", this.connection);
		}
	}

	lost(why) {
		const since = this.connection.state === "live" ? this.heard : this.connection.since;
		const state = this.connection.state === "connecting" && this.attempts < 1 && why !== TOKEN ? "connecting" : "lost";
		this.connection = {state, since, why};
		this.emit("connection", this.connection);
	}

	take(event, data) {
		if (event === "sessions") {
			this.takeSessions(data.sessions ?? data);
		} else if (event === "status" && data.status) {
			this.takeStatus(data.session, data.status);
		} else if (event === "run") {
			this.emit("run", data);
			setTimeout(() => this.emit("run", data), PICTURE_MS);
		}
	}

	takeSessions(list) {
		for (const session of this.sessions)
			this.before.set(session.name, session);
		this.sessions = Array.isArray(list) ? list : [];
		this.listed = true;
		const names = new Set(this.sessions.map(({name}) => name));
		for (const map of [this.statuses, this.histories])
			for (const name of [...map.keys()])
				if (!names.has(name))
					map.delete(name);
		for (const {name, status} of this.sessions)
			if (status)
				this.takeStatus(name, status);
		this.emit("sessions", this.sessions);
	}

	takeStatus(name, status) {
		this.statuses.set(name, status);
		this.history(name).add(status);
		const session = this.session(name);
		if (session && status.state)
			Object.assign(session, {state: status.state, run: status.run});
		this.emit("status", {session: name, status});
	}
}

export const store = new Store();
