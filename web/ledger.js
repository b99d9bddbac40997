// ledger.js - what became of every module-frame, as a table that lights up when something is lost: with the cause in words and what to do.

import {h, icon, replace, text} from "./dom.js";
import {count, percent, plural, sentence} from "./format.js";
import {OUTCOMES, causeWords, lossOf} from "./words.js";

const MOST_MODULES = 8; // of which each gets a column
/** Module-frames of a column that have their outcome; the result of a run leaves it to the reader to add them up. */
const settled = (column) => column.settled ?? Object.values(column.outcomes).reduce((a, b) => a + b, 0);
const outcome = (name) => (column) => column.outcomes[name] ?? 0;
const ROWS = [
	{name: "sent", words: "what the sources say they sent", of: (column) => column.sent, plain: true},
	...OUTCOMES.slice(0, 1).map((row) => ({...row, of: outcome(row.name)})),
	{name: "pending", words: "kept, and in every sink, but not known to be safe on disk yet; at the end of the run it is stored", of: (column) => column.pending ?? 0, plain: true, seldom: true},
	...OUTCOMES.slice(1).map((row) => ({...row, of: outcome(row.name)})),
	{name: "skipped", words: "left out by the source, which counts them", of: (column) => column.skipped, plain: true, seldom: true},
];

/** A sentence about a ledger: {tone, words}. over: the run has ended. */
export function verdict(ledger, over) {
	const {total} = ledger, loss = lossOf(total);
	if (ledger.misuse)
		return {tone: "bad", words: `${plural(ledger.misuse, "outcome")} written twice: this is a bug, please report it`};
	if (loss)
		return {tone: "bad", words: `${count(loss)} of ${plural(settled(total), "module-frame")} lost or damaged (${percent(loss, settled(total))})`};
	if (over && !ledger.closed)
		return {tone: "bad", words: "the ledger does not close: a source vanished, or its counts do not agree"};
	if (!settled(total))
		return {tone: "", words: "nothing was sent yet"};
	return {tone: "good", words: over ? "the ledger closes: nothing lost or damaged" : "every module-frame accounted for, nothing lost"};
}

/** Causes of a column that are losses, the largest first: [{name, n, of, words, hint}] */
export function lossCauses(column) {
	return Object.entries(column?.causes ?? {}).map(([name, n]) => ({name, n, ...causeWords(name)}))
		.filter(({n, of}) => n && of !== "vetoed").sort((a, b) => b.n - a.n);
}

export class Ledger {
	/** explain(): called by the button that asks why; without it there is none. */
	constructor(explain) {
		this.explain = explain;
		this.before = {};
		this.summary = h("span.summary");
		this.bar = h("div.shares", {"aria-hidden": "true"});
		this.table = h("table");
		this.causes = h("div.causes");
		this.element = h("section.panel.ledger", {"aria-label": "ledger"}, h("div.panel-head", h("h2", "Ledger"), this.summary), this.bar, h("div.scroll", this.table), this.causes);
	}

	show(ledger, over) {
		const {tone, words} = verdict(ledger, over);
		this.element.classList.toggle("lit", tone === "bad");
		if (words !== this.said)
			replace(this.summary, tone && icon(tone === "good" ? "check" : "warning"), words);
		this.said = words;
		this.summary.className = `summary ${tone}`;
		const modules = ledger.modules.length > 1 && ledger.modules.length <= MOST_MODULES ? ledger.modules : [];
		this.build(modules.length, ledger.names);
		for (const row of this.rows)
			this.fill(row, ledger.total, modules);
		this.shares(ledger.total);
		this.why(ledger);
	}

	/** Rows are made once: their cells change, so that a text can be selected and a tip stays. */
	build(n, names) {
		const key = `${n} ${names?.join()}`;
		if (this.columns === key)
			return;
		this.columns = key;
		const head = (label, more = "") => h("th", {scope: "col", class: more}, label);
		this.rows = ROWS.map((row) => {
			const cells = Array.from({length: n + 1}, (_, i) => h("td", {class: i < n ? "module" : "total"}));
			const part = h("td.part");
			return {...row, cells, part, element: h("tr", {title: row.words}, h("th", {scope: "row"}, row.name), cells, part)};
		});
		replace(this.table, h("thead", h("tr", head(""), Array.from({length: n}, (_, i) => head(names?.[i] ?? `module ${i}`, "module")), head("total"), head("share"))), h("tbody", this.rows.map(({element}) => element)));
	}

	fill(row, total, modules) {
		const values = [...modules, total].map(row.of), sum = values.at(-1), lit = row.loss && sum > 0;
		row.element.hidden = Boolean(row.seldom && !sum);
		row.element.className = row.plain ? "plain" : lit ? "lit" : "";
		if (lit && sum > (this.before[row.name] ?? 0))
			row.element.animate?.([{backgroundColor: "color-mix(in srgb, var(--bad) 45%, transparent)"}, {}], 1200);
		this.before[row.name] = sum;
		values.forEach((value, i) => {
			text(row.cells[i], count(value));
			row.cells[i].classList.toggle("zero", !value);
		});
		text(row.part, row.plain || !sum ? "" : percent(sum, settled(total)));
	}

	shares(total) {
		const of = (name) => (name === "pending" ? total.pending : total.outcomes[name]) ?? 0;
		const parts = [...OUTCOMES, {name: "pending"}].filter(({name}) => of(name));
		while (this.bar.childElementCount < parts.length)
			this.bar.append(h("i"));
		while (this.bar.childElementCount > parts.length)
			this.bar.lastChild.remove();
		parts.forEach(({name, loss}, i) => {
			this.bar.children[i].className = loss ? "loss" : name;
			this.bar.children[i].style.flexGrow = String(Math.max(of(name) / settled(total), 0.004));
		});
	}

	/** What each loss means, and which modules have it. */
	why({total, modules, names}) {
		const causes = lossCauses(total), key = causes.map(({name}) => name).join();
		if (key !== this.key) {
			this.key = key;
			this.numbers = causes.map(() => h("b"));
			this.places = causes.map(() => h("span.dim"));
			replace(this.causes, causes.map((cause, i) => h("article.cause", h("h3", this.numbers[i], ` ${cause.of ? `${cause.of}: ` : ""}${cause.name.replaceAll("_", " ")} `, this.places[i]), h("p", sentence(cause.words)), cause.hint && h("p.hint", h("b", "What to do: "), sentence(cause.hint)))),
				causes.length && this.explain && h("p", h("button.button.small", {onclick: this.explain}, "Why was this lost?")));
		}
		causes.forEach(({name, n}, i) => {
			const found = modules.flatMap((column, index) => (column.causes[name] ? [index] : []));
			text(this.numbers[i], count(n));
			text(this.places[i], modules.length < 2 ? "" : found.length === modules.length ? `all ${names ? "transfers" : "modules"}` : `${names ? "transfer" : "module"}${found.length > 1 ? "s" : ""} ${found.slice(0, 6).map((index) => names?.[index] ?? index).join(", ")}${found.length > 6 ? ", ..." : ""}`);
		});
	}
}
