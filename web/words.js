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
	{name: "stored", words: "kept, and every sink that wanted it has it"},
	{name: "prescaled", words: "rejected, kept as a sample of the rejected"},
	{name: "vetoed", words: "rejected by a stage, or a dark frame"},
	{name: "incomplete", loss: true, words: "damaged, or another module of the frame is missing"},
	{name: "overrun", loss: true, words: "there was no room for it, or not for long enough"},
	{name: "unproven", loss: true, words: "arrived, but nothing proves that it is whole"},
	{name: "refused", loss: true, words: "the unit could not process it"},
	{name: "unwritten", loss: true, words: "kept, but a sink failed or left it out"},
	{name: "lost", loss: true, words: "nothing of it arrived"},
];
export const LOSSES = OUTCOMES.filter(({loss}) => loss).map(({name}) => name);

/** of: the outcome that a cause belongs to; words: what happened; hint: what to do. */
export const CAUSES = {
	dark: {of: "vetoed", words: "dark frames: samples of the pedestal", hint: ""},
	stage: {of: "vetoed", words: "a stage said no", hint: ""},
	damaged: {of: "incomplete", words: "Some packets of these blocks did not arrive.",
		hint: "Look at the way between front end and receiver: drops of the NIC (ethtool -S), the receive buffer (net.core.rmem_max), the switch, the cable. sluice doctor checks this host."},
	partner: {of: "incomplete", words: "Whole themselves, but another module of the same frame is not.",
		hint: "Mend the loss of the other module. With ring.incomplete: keep, frames with a module missing are processed all the same."},
	record: {of: "incomplete", words: "All bytes are there, but the record behind them contradicts them.",
		hint: "The front end wrote a wrong record, or modules count triggers differently: compare its firmware with docs/reference/wire.md, and look at ring.align."},
	checksum: {of: "incomplete", words: "The pixels do not match the checksum in their record.",
		hint: "Memory of the front end, or its way to the NIC, changes bits. Take this module out of service and test its memory."},
	no_slot: {of: "overrun", words: "The source was ahead of the open slots: there was no room.",
		hint: "Processing or a sink is slower than the detector. See which queue is full; then more ring.slots, more unit.workers, a faster disk, or a lower rate."},
	no_arrival: {of: "lost", words: "No packet of these blocks came.",
		hint: "Is the module powered and its cable in? Compare the MTU on the way, and look at the link's drops below. Blocks that the front end skipped are counted here, too."},
	sink: {of: "unwritten", words: "A required sink refused them, or its file did not close.",
		hint: "Its error stands beside the sink below. Often the disk is full or not writable."},
	unit: {of: "refused", words: "The unit could not process them.",
		hint: "Its error stands beside the unit below; with an accelerator, look at its driver's log (dmesg)."},
	late: {of: "incomplete", words: "Whole, but their frame was given out before they came.",
		hint: "This module lags behind the others. Raise ring.late_timeout_ms or ring.late_frames, or find what delays it."},
	oldest: {of: "overrun", words: "Whole, but given back unprocessed to make room for newer ones.",
		hint: "ring.overrun is drop_oldest, and processing is too slow: more unit.workers, more ring.slots, or a lower rate."},
	overwritten: {of: "overrun", words: "The source wrote there again before they were read.",
		hint: "This source does not wait for credits. More ring.slots, more unit.workers, or a lower rate."},
	slow: {of: "unwritten", words: "A sink with on_slow: prescale could not keep pace and left them out.",
		hint: "A faster disk, more writer threads or compression for this sink, or fewer frames to keep."},
};

/** The outcome of a cause; causes of later versions are named as they are. */
export function causeWords(name) {
	return CAUSES[name] ?? {of: null, words: name.replaceAll("_", " "), hint: ""};
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
