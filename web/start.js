// start.js - choose an experiment, fill in its parameters, start it.

import * as api from "./api.js";
import {dialog, toast} from "./dialogs.js";
import {h, replace} from "./dom.js";
import {fileName, mark, quantity} from "./format.js";
import {store} from "./store.js";

const READY_MS = 15000;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** One field of the form: {row, read()}; read() gives undefined where nothing is filled in. */
function field({name, label, type, min, max, values, unit, doc, value}) {
	const id = `parameter-${name}`, numeric = type === "integer" || type === "number";
	const options = values ?? (type === "boolean" ? [true, false] : null), now = String(value ?? "");
	const input = options ? h("select", {id}, options.map((each) => h("option", {value: String(each)}, each === true ? "yes" : each === false ? "no" : String(each)))) :
		h("input", {id, type: numeric ? "number" : "text", min: min ?? "", max: max ?? "", step: type === "integer" ? "1" : "any", placeholder: now});
	input.value = now;
	const range = numeric && Number.isFinite(min) && Number.isFinite(max) && `${mark(quantity(min))} to ${mark(quantity(max))}`, notes = [doc, range].filter(Boolean).join("; ");
	const read = () => (input.value === "" ? undefined : numeric ? Number(input.value) : options ? options.find((each) => String(each) === input.value) : input.value);
	return {name, read, row: h("div.field", h("label", {for: id}, label || name), h("span.input", input, unit && h("span.unit", unit)), notes && h("small.dim", notes))};
}

/** Wait until a session can be started, then start it. A session that was made just now may still read its experiment. */
async function begin(name) {
	const end = Date.now() + READY_MS;
	for (;;) {
		try {
			await api.post(api.session(name, "start"));
			return;
		} catch (error) {
			const early = [404, 503].includes(error.status) || (error.status === 409 && ["idle", undefined].includes(store.session(name)?.state));
			if (!early || Date.now() > end)
				throw error;
			await pause(200);
		}
	}
}

function problems(box, error) {
	const list = (error.errors ?? []).map((each) => h("li", h("b", each.where ?? each.code ?? ""), each.line && !String(each.where ?? "").includes(":") ? ` line ${each.line}` : "", ` ${each.message}`, each.hint && h("span.dim", ` ${each.hint}`)));
	replace(box, h("p", error.message, error.hint && h("span.dim", ` ${error.hint}`)), list.length ? h("ul", list) : null);
	box.hidden = false;
}

/** The form for one experiment; done(values, name) does it. */
function form(experiment, {action, withName}, done) {
	const fields = (experiment.parameters ?? []).map(field);
	const called = withName ? h("input", {id: "session-name", type: "text", placeholder: experiment.name, pattern: "[A-Za-z0-9_][A-Za-z0-9._\\-]{0,62}", title: "1 to 63 of A-Z a-z 0-9 . _ -, no . or - at the beginning"}) : null;
	const box = h("div.problems", {role: "alert", hidden: true});
	const button = h("button.button.primary", {type: "submit"}, action);
	return h("form.start", {onsubmit: async (event) => {
		event.preventDefault();
		button.disabled = true;
		box.hidden = true;
		try {
			await done(Object.fromEntries(fields.map(({name, read}) => [name, read()]).filter(([, value]) => value !== undefined)), called?.value.trim() || undefined);
		} catch (error) {
			problems(box, error);
		}
		button.disabled = false;
	}}, experiment.title && h("p.dim", experiment.title), fields.length ? fields.map(({row}) => row) : h("p.dim", "This experiment declares no parameters: it runs as its file says."),
	called && h("div.field", h("label", {for: "session-name"}, "name of the session"), h("span.input", called), h("small.dim", "left empty: the name of the experiment")), box, h("div.actions", button));
}

/** Choose an experiment and start a session of it; goes to its page. */
export async function startSession(wanted) {
	if (!store.may("operate"))
		return toast(`Starting needs the role operate; yours is ${store.role()}.`);
	const body = h("div", h("p.dim", "Reading the experiments\u2026"));
	const element = dialog("Start a session", body);
	const show = (experiment) => replace(body, h("h3.chosen", experiment.name), form(experiment, {action: "Start", withName: true}, async (parameters, name) => {
		const made = await api.post("sessions", {experiment: experiment.name, name, parameters});
		await begin(made.name);
		element.close();
		location.hash = `#/session/${encodeURIComponent(made.name)}`;
	}));
	try {
		const {experiments} = await api.get("experiments");
		const one = experiments.find(({name}) => name === wanted);
		if (one)
			return show(one);
		replace(body, experiments.length ? h("ul.choices", experiments.map((each) => choice(each, () => show(each)))) : h("p", "There is no experiment file in the folder that the service was started with: put a file NAME.yaml there."));
	} catch (error) {
		replace(body, h("p.problems", error.message));
	}
}

export function choice(experiment, pick) {
	const why = experiment.error?.message ?? experiment.error;
	return h("li", h("button.choice", {disabled: experiment.valid === false, onclick: pick}, h("b", experiment.name), h("span", {class: experiment.valid === false ? "bad" : "dim"}, experiment.valid === false ? why || "not valid" : experiment.title || "")));
}

/** Run a session again, with other parameters where its experiment has some. */
export async function startAgain(session) {
	try {
		const {experiments} = await api.get("experiments");
		const file = fileName(session.experiment).replace(/\.yaml$/, "");
		const experiment = experiments.find(({name}) => name === file) ?? {name: file, parameters: []};
		if (!experiment.parameters?.length)
			return await begin(session.name);
		const element = dialog(`Start ${session.name} again`, form(experiment, {action: "Start"}, async (parameters) => {
			if (Object.keys(parameters).length)
				await api.post(api.session(session.name, "configure"), {parameters});
			await begin(session.name);
			element.close();
		}));
	} catch (error) {
		toast(`${session.name} was not started: ${error.message}${error.hint ? ` \u2013 ${error.hint}` : ""}`, "bad");
	}
}
