// transfers.js - a run with several transfers: what they are together, and each beside the others. No DOM: tested by node.

/** Counts of several objects, added up by name. */
const added = (objects) => objects.reduce((sum, object) => {
	for (const [name, n] of Object.entries(object ?? {}))
		sum[name] = (sum[name] ?? 0) + n;
	return sum;
}, {});
const settledOf = (column) => column.settled ?? Object.values(column.outcomes ?? {}).reduce((a, b) => a + b, 0);

/** Columns of ledgers as one. */
export function addColumns(columns) {
	const {outcomes, causes, ...counts} = {outcomes: added(columns.map((column) => column.outcomes)), causes: added(columns.map((column) => column.causes))};
	for (const name of ["sent", "skipped", "pending"])
		counts[name] = columns.reduce((sum, column) => sum + (column[name] ?? 0), 0);
	return {...counts, settled: columns.reduce((sum, column) => sum + settledOf(column), 0), outcomes, causes};
}

/** Ledgers of transfers as one: its columns are the transfers, not their modules, whose numbers are those of each transfer. */
export function addLedgers(parts) {
	return {
		closed: parts.every(({ledger}) => ledger.closed), misuse: parts.reduce((sum, {ledger}) => sum + (ledger.misuse ?? 0), 0),
		total: addColumns(parts.map(({ledger}) => ledger.total)), modules: parts.map(({ledger}) => ({...ledger.total, settled: settledOf(ledger.total)})), names: parts.map(({name}) => name),
	};
}

/** Of a status of a session, and of a result: {name, session, result, frames, kept, framesPerS, bytesPerS, ledger}. */
export const ofStatus = (status) => ({name: status.transfer, session: status.session, result: status.result ?? status.state, frames: status.frames.settled, kept: status.frames.kept, ledger: status.ledger,
	framesPerS: status.state === "running" ? status.rates?.frames_per_s : undefined, bytesPerS: status.state === "running" ? status.rates?.bytes_per_s : undefined});
export const ofResult = ([name, result]) => ({name, result: result.result, frames: result.frames?.settled, kept: result.frames?.kept, ledger: result.ledger,
	framesPerS: result.rates?.frames_per_s, bytesPerS: result.rates ? result.rates.GB_per_s * 1e9 : undefined});

/** Statuses of the transfers of the run of this one, itself among them; none where it has one transfer alone. */
export function siblings(status, statuses) {
	const found = !status?.transfer || !status.folder ? [] : [...statuses].filter((one) => one.transfer && one.folder === status.folder && one.run === status.run);
	return found.length > 1 ? found.sort((a, b) => (a.transfer < b.transfer ? -1 : 1)) : [];
}

/** Bytes a second of all. Frames are not added: transfers may have the same frames, or each some of them. */
export function bytesOfAll(parts) {
	const known = parts.map(({bytesPerS}) => bytesPerS).filter(Number.isFinite);
	return known.length ? known.reduce((a, b) => a + b, 0) : NaN;
}
