// history.js - from statuses, one after the other, to lines over time. No DOM: tested by node.

import {lossOf} from "./words.js";

const MOST = 1400, RATE_S = 2;

const part = (value, of) => (of > 0 ? value / of : NaN);
const share = (gauge) => (gauge && gauge.of ? (100 * gauge.now) / gauge.of : NaN);

/** The hop that stands for the latency of a frame: the longest way that was measured. */
export function wholeHop(latency) {
	return ["total", "decision", "process"].find((name) => latency?.[name]?.count);
}

/** How many of the module-frames that the ledger has as pending are on disk already, for each module: at least so many, and exactly as many
 *  as the watermark proves. Pending ones of sequences from the watermark on are not safe yet; there are no more of them than such sequences. */
export class Safe {
	constructor() {
		this.clear();
	}

	clear() {
		this.most = [];
		this.seen = []; // {end, pending}: of each module, newest last
	}

	add(status) {
		const {modules} = status.ledger, mark = status.watermark ?? 0;
		modules.forEach((column, i) => {
			const end = (status.sources?.modules?.[i]?.first ?? 0) + column.settled, samples = status.frames?.prescaled ?? 0;
			const list = (this.seen[i] ??= []);
			while (list.length > 1 && list[1].end <= mark)
				list.shift();
			const proven = Math.max(column.pending - Math.max(0, end - mark), list[0]?.end <= mark ? list[0].pending : 0) - samples;
			this.most[i] = Math.max(0, Math.min(column.pending, Math.max(proven, this.most[i] ?? 0)));
			if (column.pending && (list.at(-1)?.end ?? -1) < end && list.length < MOST)
				list.push({end, pending: column.pending});
		});
		return this.most;
	}

	/** The ledger with what is safe counted as stored. */
	apply(ledger) {
		const modules = ledger.modules.map((column, i) => moved(column, this.most[i] ?? 0));
		return {...ledger, modules, total: moved(ledger.total, this.most.slice(0, modules.length).reduce((a, b) => a + b, 0))};
	}
}

const moved = (column, n) => (n ? {...column, pending: column.pending - n, outcomes: {...column.outcomes, stored: (column.outcomes.stored ?? 0) + n}} : column);

/** What a session did, a sample for each status; columns are arrays of one length, t is seconds since 1970. */
export class History {
	constructor() {
		this.clear();
	}

	clear() {
		this.columns = {t: [], frames: [], bytes: [], hits: [], slots: [], unit: [], sinks: [], mean: [], p50: [], p99: [], lost: []};
		this.counts = []; // {t, settled, kept, count, sum}: what rates over RATE_S are made of
		this.run = undefined;
		this.safe = new Safe();
	}

	/** Values of now against those of at least RATE_S ago, of the same run. */
	rate(now) {
		const before = this.counts.find(({t}) => t >= now.t - RATE_S - 0.4) ?? now;
		this.counts = [...this.counts.filter(({t}) => t >= now.t - RATE_S - 0.4), now];
		return {hits: part(100 * (now.kept - before.kept), now.settled - before.settled), mean: part(now.sum - before.sum, now.count - before.count)};
	}

	add(status) {
		const t = status.taken_unix_ns / 1e9;
		if (this.columns.t.length && t <= this.columns.t.at(-1))
			return;
		if (status.started_unix_ns !== this.run || status.frames.settled < (this.counts.at(-1)?.settled ?? 0)) {
			this.run = status.started_unix_ns;
			this.counts = [];
			this.safe.clear();
			this.push(t - 0.001, {}); // a gap in the lines
		}
		if (status.ledger?.modules)
			this.safe.add(status);
		const hop = status.latency_ns?.[wholeHop(status.latency_ns)];
		const {hits, mean} = this.rate({t, settled: status.frames.settled, kept: status.frames.kept, count: hop?.count ?? 0, sum: hop?.sum ?? 0});
		const over = status.state === "ended" || status.state === "configured" || status.state === "fault";
		this.push(t, {
			frames: over ? NaN : status.rates?.frames_per_s, bytes: over ? NaN : status.rates?.bytes_per_s, hits, mean,
			slots: share(status.gauges?.slots), unit: share(status.gauges?.unit), sinks: share(status.gauges?.sinks),
			p50: hop?.p50, p99: hop?.p99, lost: lossOf(status.ledger?.total),
		});
	}

	push(t, values) {
		const last = this.columns.t.at(-1);
		if (last !== undefined && t - last > 4 && values.frames !== undefined)
			this.push(last + 0.001, {}); // no line over a time of which nothing is known
		for (const [name, column] of Object.entries(this.columns)) {
			column.push(name === "t" ? t : values[name] ?? NaN);
			if (column.length > MOST)
				column.shift();
		}
	}

	/** The last seconds as [from, to]; less while there is less, but 20 s at least. */
	span(seconds) {
		const {t} = this.columns, end = t.at(-1) ?? 0;
		return [Math.min(end - 20, Math.max(end - seconds, t[0] ?? 0)), end];
	}

	last(name) {
		return this.columns[name].findLast((value) => !Number.isNaN(value));
	}
}
