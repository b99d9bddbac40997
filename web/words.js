// words.js - what states, outcomes and causes mean, and what to do: for people who have never seen the code. No DOM.

export const STATES = {
	idle: "no experiment", configured: "ready: the experiment is read and checked", armed: "armed: outputs, memory and plans are there",
	running: "running: sources send", paused: "paused: sources get no credits", stopping: "stopping: what was sent is still processed",
	ended: "ended: files are closed, the ledger is final", fault: "fault: the run could not begin", crashed: "crashed: its process ended without closing the run",
};

export const RESULTS = {
	intact: ["good", "nothing was lost, damaged or left out"], empty: ["", "nothing was sent"],
	error: ["bad", "it could not run, or an output could not be written"], damaged: ["bad", "not everything arrived and was stored"],
	unclosed: ["bad", "a source vanished, or the ledger does not close"], crashed: ["bad", "the process ended without closing the run"],
	live: ["live", "the run goes on"],
};

/** Outcomes in the order of the ledger; loss: one that nobody wants. */
export const OUTCOMES = [
	{name: "stored", words: "kept, and safe in every sink that wanted it"},
	{name: "prescaled", words: "rejected, kept as a sample of the rejected"},
	{name: "vetoed", words: "rejected by a stage, or a dark frame"},
	{name: "incomplete", loss: true, words: "damaged, or another module of the frame is missing"},
	{name: "overrun", loss: true, words: "there was no room for it, or not for long enough"},
	{name: "unproven", loss: true, words: "arrived, but nothing proves that it is whole"},
	{name: "refused", loss: true, words: "the unit could not process it"},
	{name: "unwritten", loss: true, words: "kept, but a sink failed or left it out"},
	{name: "lost", loss: true, words: "nothing of it arrived"},
	{name: "unmatched", words: "of no event of the detector that defines events"},
];
export const LOSSES = OUTCOMES.filter(({loss}) => loss).map(({name}) => name);

/** The outcome that each cause belongs to. */
export const CAUSES = {
	dark: "vetoed", stage: "vetoed", damaged: "incomplete", partner: "incomplete", record: "incomplete", checksum: "incomplete", late: "incomplete", no_slot: "overrun", oldest: "overrun", overwritten: "overrun",
	no_arrival: "lost", sink: "unwritten", slow: "unwritten", unit: "refused", no_event: "unmatched",
};

const said = new Map();

/** What the service says of causes: [{cause, words, hint}] */
export function learn(causes) {
	for (const {cause, words, hint} of causes ?? [])
		said.set(cause, {words, hint});
}

/** What happened, and what to do about it; causes of which nothing was said have their name. */
export function causeWords(name) {
	return {of: CAUSES[name], words: name.replaceAll("_", " "), hint: "", ...said.get(name)};
}

/** Module-frames of a column of the ledger that were lost, damaged or left out. */
export function lossOf(column) {
	return LOSSES.reduce((sum, name) => sum + (column?.outcomes?.[name] ?? 0), 0);
}

export const HOPS = {
	wire: "from the first byte sent until the last module arrived", assemble: "until the frame was put together",
	process: "until its verdict was there", sink: "until the last sink had it", total: "from the first byte sent to the last sink",
	decision: "from the first byte sent to the verdict",
};

export const ROLES = ["view", "operate", "configure"];
export const allows = (role, wanted) => ROLES.indexOf(role) >= ROLES.indexOf(wanted);
