// start.js - choose an experiment, fill in its parameters, start it.

import * as api from "./api.js";
import {dialog, toast} from "./dialogs.js";
import {h, replace, text} from "./dom.js";
import {exact, sentence} from "./format.js";
import {store} from "./store.js";

const READY_MS = 15000;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const inside = (value, min, max) => !(value < (min ?? -Infinity)) && !(value > (max ?? Infinity));

/** The description of an option, without what it says of values that this parameter does not take ("0: no limit", where 1 is the least). */
export function described(doc, min, max) {
	return (doc ?? "").split("; ").filter((part) => {
		const special = /^(-?[\d.]+): /.exec(part);
		return !special || inside(Number(special[1]), min, max);
	}).join("; ");
}

/** "1 to 200", "at least 1", or "". */
export function range(min, max) {
	const low = Number.isFinite(min), high = Number.isFinite(max);
	return low && high ? `${exact(min)} to ${exact(max)}` : low ? `at least ${exact(min)}` : high ? `at most ${exact(max)}` : "";
}

/** One field of the form: {name, label, row, read(), wrong(message)}; read() gives undefined where nothing is filled in. */
function field({name, label, type, min, max, values, unit, doc, value}) {
	const id = `parameter-${name}`, numeric = type === "integer" || type === "number";
	const options = values ?? (type === "boolean" ? [true, false] : null), now = String(value ?? "");
	const input = options ? h("select", {id}, options.map((each) => h("option", {value: String(each)}, each === true ? "yes" : each === false ? "no" : String(each)))) :
		h("input", {id, type: numeric && now !== "" && Number.isNaN(Number(now)) ? "text" : numeric ? "number" : "text", min: min ?? "", max: max ?? "", step: type === "integer" ? "1" : "any", placeholder: now});
	input.value = now;
	const notes = [described(doc, min, max), numeric && range(min, max)].filter(Boolean).join("; ");
	const number = () => (Number.isNaN(Number(input.value)) ? input.value : Number(input.value)); // a word, as "auto", stays one
	const read = () => (input.value === "" ? undefined : numeric ? number() : options ? options.find((each) => String(each) === input.value) : input.value);
	const mistake = h("small.bad", {id: `${id}-mistake`, hidden: true});
	const wrong = (message) => {
		mistake.hidden = !message;
		text(mistake, message);
		input.toggleAttribute("aria-invalid", Boolean(message));
		input.setAttribute("aria-describedby", mistake.id);
	};
	return {name, label: label || name, read, wrong, input, row: h("div.field", h("label", {for: id}, label || name), h("span.input", input, h("span.unit", unit || "")), mistake, notes && h("small.dim", notes))};
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

/** Say at each field what is wrong with it; what belongs to no field stands below the form. */
function problems(box, fields, error) {
	const of = (where) => fields.find(({name}) => where === `parameters.${name}`), rest = [];
	for (const each of error.errors ?? []) {
		const {message, hint} = each, found = of(each.where);
		if (found)
			found.wrong(sentence(`${message}${hint ? ` (${hint})` : ""}`));
		else
			rest.push(h("li", h("b", each.where ?? each.code ?? ""), each.line && !String(each.where ?? "").includes(":") ? ` line ${each.line}` : "", ` ${message}`, hint && h("span.dim", ` ${hint}`)));
	}
	const marked = fields.filter(({input}) => input.hasAttribute("aria-invalid"));
	const head = marked.length ? `Not started: ${marked.map(({label}) => label).join(", ")} ${marked.length === 1 ? "is" : "are"} not valid.` : rest.length ? "Not started:" : [error.message, error.hint && h("span.dim", ` ${error.hint}`)];
	replace(box, h("p", head), rest.length ? h("ul", rest) : null);
	box.hidden = false;
	marked[0]?.input.focus();
}

/** The form for one experiment; done(values, name) does it. */
function form(experiment, {action, withName}, done) {
	const fields = (experiment.parameters ?? []).map(field), units = experiment.parameters?.some(({unit}) => unit);
	const called = withName ? h("input", {id: "session-name", type: "text", placeholder: experiment.name, pattern: "[A-Za-z0-9_][A-Za-z0-9._\\-]{0,62}", title: "1 to 63 of A-Z a-z 0-9 . _ -, no . or - at the beginning"}) : null;
	const box = h("div.problems", {role: "alert", hidden: true});
	const button = h("button.button.primary", {type: "submit"}, action);
	return h("form", {class: `start ${units ? "units" : ""}`, onsubmit: async (event) => {
		event.preventDefault();
		button.disabled = true;
		box.hidden = true;
		for (const {wrong} of fields)
			wrong("");
		try {
			await done(Object.fromEntries(fields.map(({name, read}) => [name, read()]).filter(([, value]) => value !== undefined)), called?.value.trim() || undefined);
		} catch (error) {
			problems(box, fields, error);
		}
		button.disabled = false;
	}}, experiment.title && h("p.dim", experiment.title), fields.length ? fields.map(({row}) => row) : h("p.dim", "This experiment declares no parameters: it runs as its file says."),
	called && h("div.field", h("label", {for: "session-name"}, "Name of the session"), h("span.input", called, h("span.unit")), h("small.dim", "left empty: the name of the experiment")), box, h("div.actions", button));
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

/** The experiment of a session, where it lies in the folder of the service: a file of the same name elsewhere is another one. */
export function experimentOf(session, experiments, folder) {
	return experiments.find(({name}) => folder && session.experiment === `${folder}/${name}.yaml`) ?? null;
}

/** Run a session again, with other parameters where its experiment has some: those that it has now are filled in. */
export async function startAgain(session) {
	try {
		const {experiments} = await api.get("experiments");
		const experiment = experimentOf(session, experiments, store.capabilities?.folders?.experiments), now = store.statuses.get(session.name)?.parameters ?? {};
		if (!experiment?.parameters?.length)
			return await begin(session.name);
		const parameters = experiment.parameters.map((each) => ({...each, value: Object.hasOwn(now, each.name) ? now[each.name] : each.value}));
		const element = dialog(`Start ${session.name} again`, form({...experiment, parameters}, {action: "Start"}, async (values) => {
			if (parameters.some(({name, value}) => values[name] !== value))
				await api.post(api.session(session.name, "configure"), {parameters: values});
			await begin(session.name);
			element.close();
		}));
	} catch (error) {
		toast(`${session.name} was not started: ${error.message}${error.hint ? ` \u2013 ${error.hint}` : ""}`, "bad");
	}
}
