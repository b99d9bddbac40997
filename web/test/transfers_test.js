import assert from "node:assert/strict";
import {test} from "node:test";

import {addColumns, addLedgers, bytesOfAll, ofResult, ofStatus, siblings} from "../transfers.js";

const column = (sent, outcomes, causes = {}) => ({sent, skipped: 1, outcomes, causes});

test("ledgers of transfers are added by outcome and by cause, and each transfer is a column", () => {
	const parts = [{name: "left", ledger: {closed: true, misuse: 0, total: column(600, {stored: 566, incomplete: 34}, {damaged: 18, partner: 16}), modules: [{}, {}]}},
		{name: "right", ledger: {closed: true, misuse: 0, total: {...column(300, {stored: 299, lost: 1}, {no_arrival: 1}), settled: 300, pending: 7}, modules: [{}]}}];
	const {total, modules, names, closed, misuse} = addLedgers(parts);
	assert.deepEqual(total, {sent: 900, skipped: 2, pending: 7, settled: 900, outcomes: {stored: 865, incomplete: 34, lost: 1}, causes: {damaged: 18, partner: 16, no_arrival: 1}});
	assert.deepEqual(names, ["left", "right"]);
	assert.deepEqual(modules.map(({sent, settled}) => [sent, settled]), [[600, 600], [300, 300]]);
	assert.deepEqual([closed, misuse], [true, 0]);
	parts[1].ledger.closed = false;
	assert.equal(addLedgers(parts).closed, false);
	assert.deepEqual(addColumns([]), {sent: 0, skipped: 0, pending: 0, settled: 0, outcomes: {}, causes: {}});
});

test("bytes a second are added, those that are not known are left out", () => {
	assert.equal(bytesOfAll([{bytesPerS: 2e9}, {bytesPerS: 1e9}, {}]), 3e9);
	assert.ok(Number.isNaN(bytesOfAll([{}, {}])));
	const part = ofResult(["left", {result: "intact", frames: {settled: 5, kept: 4}, rates: {frames_per_s: 100, GB_per_s: 0.5}, ledger: {}}]);
	assert.deepEqual([part.name, part.frames, part.bytesPerS], ["left", 5, 5e8]);
	const status = {transfer: "left", session: "two.left", state: "ended", result: "intact", frames: {settled: 5, kept: 4}, rates: {frames_per_s: 100, bytes_per_s: 7}, ledger: {}};
	assert.equal(ofStatus(status).bytesPerS, undefined); // it is over: what it was is no rate now
	assert.equal(ofStatus({...status, state: "running", result: null}).bytesPerS, 7);
	assert.equal(ofStatus({...status, state: "running", result: null}).result, "running");
});

test("transfers of one run belong together, others do not", () => {
	const status = (transfer, folder, run = 1) => ({transfer, folder, run, session: `two.${transfer}`});
	const left = status("left", "/runs/000001"), right = status("right", "/runs/000001");
	const all = [right, left, status("left", "/runs/000002", 2), status(null, "/runs/000001"), status("x", null)];
	assert.deepEqual(siblings(left, all).map(({transfer}) => transfer), ["left", "right"]);
	assert.deepEqual(siblings(all[2], all), []);
	assert.deepEqual(siblings(all[3], all), []);
	assert.deepEqual(siblings(all[4], all), []);
	assert.deepEqual(siblings(undefined, all), []);
});
