import assert from "node:assert/strict";
import {test} from "node:test";

import {EventParser} from "../api.js";
import {visible} from "../format.js";
import {History, Safe, wholeHop} from "../history.js";
import {lossCauses, verdict} from "../ledger.js";
import {curve} from "../results.js";
import {described, experimentOf, range} from "../start.js";
import {CAUSES, LOSSES, OUTCOMES, allows, causeWords, learn, lossOf} from "../words.js";

const column = (outcomes, causes = {}) => ({settled: Object.values(outcomes).reduce((a, b) => a + b, 0), sent: 0, skipped: 0, pending: 0, outcomes, causes});

function status(t, settled, kept, more = {}) {
	return {
		taken_unix_ns: t * 1e9, started_unix_ns: 5e9, state: "running", frames: {settled, kept}, rates: {frames_per_s: 100, bytes_per_s: 2e8}, latency_ns: {total: {count: settled, sum: settled * 1e6, p50: 9e5, p99: 5e6}},
		gauges: {slots: {now: 8, of: 32}, unit: {now: 12, of: 48}, sinks: {now: 1, of: null}}, ledger: {total: column({stored: kept})}, ...more,
	};
}

test("rates over the last two seconds, not over the run", () => {
	const history = new History();
	for (let i = 0; i <= 20; i++)
		history.add(status(10 + i / 2, i * 50, i < 10 ? 0 : (i - 10) * 25));
	assert.equal(history.last("hits"), 50);
	assert.equal(history.last("mean"), 1e6);
	assert.equal(history.last("slots"), 25);
	assert.ok(Number.isNaN(history.columns.sinks.at(-1)), "no limit: no share of it");
});

test("nothing happened: no rate, and no line where nothing is known", () => {
	const history = new History();
	history.add(status(10, 100, 5));
	history.add(status(10.5, 100, 5));
	assert.ok(Number.isNaN(history.columns.hits.at(-1)));
	const n = history.columns.t.length;
	history.add(status(60, 100, 5));
	assert.equal(history.columns.t.length, n + 2, "a gap and a sample");
	assert.ok(Number.isNaN(history.columns.frames.at(-2)));
	history.add(status(59, 100, 5));
	assert.equal(history.columns.t.length, n + 2, "an older one is left out");
});

test("another run begins its own rates", () => {
	const history = new History();
	history.add(status(10, 1000, 900));
	history.add(status(10.5, 1050, 950));
	history.add(status(11, 3, 0, {started_unix_ns: 11e9}));
	assert.ok(Number.isNaN(history.columns.hits.at(-1)));
});

test("memory of a long run is bounded", () => {
	const history = new History();
	for (let i = 0; i < 5000; i++)
		history.add(status(10 + i / 2, i, 0));
	assert.ok(history.columns.t.length <= 1400);
	assert.equal(new Set(Object.values(history.columns).map(({length}) => length)).size, 1);
	const [from, to] = history.span(120);
	assert.equal(to - from, 120);
});

test("a status without rates, latency and gauges", () => {
	const history = new History();
	history.add({...status(10, 0, 0), rates: null, latency_ns: {}, gauges: {}});
	assert.equal(history.columns.t.length, 2);
	assert.equal(wholeHop({}), undefined);
	assert.equal(wholeHop({process: {count: 3}, total: {count: 0}}), "process");
});

test("losses, and what is said of them", () => {
	assert.deepEqual(LOSSES, ["incomplete", "overrun", "unproven", "refused", "unwritten", "lost"]);
	const total = column({stored: 90, vetoed: 5, incomplete: 3, lost: 2}, {stage: 5, damaged: 1, partner: 2, no_arrival: 2});
	assert.equal(lossOf(total), 5);
	assert.deepEqual(lossCauses(total).map(({name, of}) => [name, of]), [["partner", "incomplete"], ["no_arrival", "lost"], ["damaged", "incomplete"]]);
	assert.match(verdict({total, misuse: 0, closed: true}, true).words, /^5 of 100 module-frames lost or damaged \(5\.0/);
	assert.equal(verdict({total: column({stored: 9}), misuse: 0, closed: false}, false).tone, "good");
	assert.equal(verdict({total: column({stored: 9}), misuse: 0, closed: false}, true).tone, "bad");
	assert.equal(verdict({total: column({}), misuse: 0, closed: false}, false).tone, "");
	const {settled, ...stored} = column({stored: 9, incomplete: 1});
	assert.match(verdict({total: stored, closed: true}, true).words, /^1 of 10 /, `${settled} is added up`);
});

test("a cause of a later version has its name", () => {
	const [cause] = lossCauses(column({incomplete: 1}, {cosmic_ray: 1}));
	assert.deepEqual([cause.words, cause.hint], ["cosmic ray", ""]);
});

test("causes belong to outcomes, and have the words of the service", () => {
	for (const [name, of] of Object.entries(CAUSES))
		assert.ok(OUTCOMES.some((outcome) => outcome.name === of), name);
	learn(undefined);
	assert.deepEqual(causeWords("no_slot"), {of: "overrun", words: "no slot", hint: ""});
	learn([{cause: "no_slot", words: "there was no room", hint: "more slots"}]);
	assert.deepEqual(causeWords("no_slot"), {of: "overrun", words: "there was no room", hint: "more slots"});
});

test("roles", () => {
	assert.deepEqual(["view", "operate", "configure", "nobody"].map((role) => allows(role, "operate")), [false, true, true, false]);
});

test("events in pieces of any size", () => {
	const stream = ': hello\nevent: status\ndata: {"a":\ndata: 1}\n\ndata: plain\r\n\r\nevent: empty\n\nevent:run\rdata:x\r\rid: 7\nretry: 10\ndata\n\n';
	for (let size = 1; size <= stream.length; size++) {
		const seen = [];
		const parser = new EventParser((event, data) => seen.push([event, data]));
		for (let at = 0; at < stream.length; at += size)
			parser.feed(stream.slice(at, at + size));
		assert.deepEqual(seen, [["status", '{"a":\n1}'], ["message", "plain"], ["run", "x"], ["message", ""]], `pieces of ${size}`);
	}
});

test("profiles: middles, intensity and error, or a plain list", () => {
	const profile = {shape: [3, 2], data: [1, 2, 10, null, 0, 0]};
	assert.deepEqual(curve({profile}), {x: [1, 2], y: [10, NaN], xLabel: ""});
	const axis = {shape: [2], data: [0.1, 0.2], unit: "1/nm"};
	assert.deepEqual(curve({profile, profile_sum: {shape: [1], data: [4], unit: ""}, profile_q: axis}), {x: [0.1, 0.2], y: [10, NaN], xLabel: "q 1/nm"});
	assert.deepEqual(curve({profile: {shape: [3], data: [5, 6, 7]}}), {x: [0, 1, 2], y: [5, 6, 7], xLabel: ""});
	assert.equal(curve({profile: {...profile, data: null}}), null);
	assert.equal(curve({peaks: axis}), null);
});

const mixed = (settled, pending, more = {}) => ({settled, sent: settled, skipped: 0, pending, outcomes: {}, causes: {}, ...more});
const live = (watermark, columns, prescaled = 0) => ({watermark, frames: {prescaled}, sources: {modules: columns.map(() => ({first: 0}))}, ledger: {total: mixed(0, columns.reduce((sum, {pending}) => sum + pending, 0)), modules: columns}});

test("what the watermark proves to be safe: never more than that, and all of it in the end", () => {
	const safe = new Safe();
	assert.deepEqual(safe.add(live(0, [mixed(100, 40)])), [0], "nothing is safe");
	assert.deepEqual(safe.add(live(90, [mixed(100, 40)])), [30], "of ten frames beyond the watermark all may be kept");
	assert.deepEqual(safe.add(live(100, [mixed(400, 90)])), [40], "those that were pending when 100 were settled");
	assert.deepEqual(safe.add(live(100, [mixed(400, 90)])), [40]);
	assert.deepEqual(safe.add(live(400, [mixed(400, 90)])), [90]);
	assert.deepEqual(new Safe().add(live(400, [mixed(400, 90)], 5)), [85], "samples of the rejected are not stored");
	const {total, modules} = safe.apply(live(400, [mixed(400, 90)]).ledger);
	assert.deepEqual([total.pending, total.outcomes.stored, modules[0].pending, modules[0].outcomes.stored], [0, 90, 0, 90]);
	assert.deepEqual(safe.add(live(400, [mixed(400, 0, {outcomes: {stored: 90}})])), [0], "the run has ended: the ledger says it itself");
	assert.equal(safe.apply({total: mixed(1, 0), modules: []}).total.pending, 0);
});

test("a form: exact ranges, and no words about values that are not taken", () => {
	assert.equal(range(0, 1e12), "0 to 1,000,000,000,000");
	assert.equal(range(0, 0.01), "0 to 0.01");
	assert.equal(range(1, null), "at least 1");
	assert.equal(described("frames per second; 0: as fast as credits allow", 1, 200), "frames per second");
	assert.equal(described("frames per second; 0: as fast as credits allow", 0, 200), "frames per second; 0: as fast as credits allow");
});

test("an experiment is that of a session by its whole path", () => {
	const list = [{name: "a"}];
	assert.equal(experimentOf({experiment: "/data/a.yaml"}, list, "/data"), list[0]);
	assert.equal(experimentOf({experiment: "/other/a.yaml"}, list, "/data"), null);
	assert.equal(experimentOf({experiment: "a.yaml"}, list, undefined), null);
});

test("marks that turn a text around are seen", () => {
	assert.equal(visible("a\u202egnp.exe\n\u0007"), "a<U+202E>gnp.exe\n<U+0007>");
	assert.equal(visible("\u05d0\u05d1 caf\u00e9"), "\u05d0\u05d1 caf\u00e9");
});
