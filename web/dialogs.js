// dialogs.js - login, confirmation, help, and short messages.

import * as api from "./api.js";
import {h, icon, replace} from "./dom.js";
import {store} from "./store.js";

/** A modal dialog; closed by Escape, by its cross, and by close(). */
export function dialog(title, content, {onclose, wide} = {}) {
	const element = h("dialog", {class: wide ? "wide" : "", "aria-label": title}, h("div.dialog-head", h("h2", title),
		h("button.tool", {"aria-label": "close", onclick: () => element.close()}, icon("close"))), h("div.dialog-body", content));
	element.addEventListener("close", () => {
		element.remove();
		onclose?.();
	});
	element.addEventListener("click", (event) => event.target === element && element.close());
	document.body.append(element);
	element.showModal();
	return element;
}

export function toast(words, tone = "") {
	const element = h("div", {class: `toast ${tone}`}, words);
	document.getElementById("toasts").append(element);
	setTimeout(() => element.remove(), tone === "bad" ? 9000 : 4000);
}

/** An error of the service in words: what happened, where, what to do. */
export function failed(what, error) {
	toast(`${what}: ${error.message}${error.where ? ` (${error.where})` : ""}${error.hint ? ` \u2013 ${error.hint}` : ""}`, "bad");
}

/** Ask before something that cannot be undone; resolves to true or false. */
export function confirmed(title, words, action) {
	return new Promise((done) => {
		let answer = false;
		const element = dialog(title, [h("p", words), h("div.actions",
			h("button.button", {onclick: () => element.close()}, "Cancel"),
			h("button.button.danger", {autofocus: true, onclick: () => {
				answer = true;
				element.close();
			}}, action))], {onclose: () => done(answer)});
	});
}

let login = null;

/** Ask for a token, once; it stays in this tab until that is closed. */
export function askToken() {
	if (login)
		return;
	const refused = api.hasToken();
	const field = h("input", {type: "password", autocomplete: "off", required: true, "aria-label": "token", placeholder: "token", autofocus: true});
	const form = h("form", {onsubmit: (event) => {
		event.preventDefault();
		api.setToken(field.value.trim());
		login.close();
		store.again();
	}}, h("p", refused ? "The service refused this token." : "This service asks for a token."), h("p.dim", "A line of the secrets file of the service has it: ROLE NAME TOKEN. It stays in this tab, and is gone when the tab is closed."),
	field, h("div.actions", h("button.button.primary", {type: "submit"}, "Continue")));
	login = dialog(refused ? "Another token, please" : "Who are you?", form, {onclose: () => (login = null)});
}

const KEYS = [
	["pages", [["g", "sessions"], ["r", "runs"], ["n", "start a session"], ["t", "light, dark or as the system"], ["?", "this help"], ["Esc", "close a dialog"]]],
	["run", [["s", "start"], ["p", "pause or resume"], ["x", "stop, after a question"]]],
	["image", [["f", "whole image"], ["z", "one to one"], ["+ \u2212", "zoom"], ["\u2190 \u2191 \u2192 \u2193", "move about, when zoomed"], ["space", "freeze"], ["c", "next colours"], ["l", "logarithmic or linear"], ["m", "mask"], ["k", "peaks"], ["o", "resolution rings"], ["b", "beam"]]],
];

export function help() {
	dialog("Keys", [h("div.keys", KEYS.map(([title, rows]) => h("section", h("h3", title), h("dl", rows.map(([key, words]) => [h("dt", key.split(" ").map((part) => h("kbd", part))), h("dd", words)]))))),
		h("p.dim", "Mouse: the wheel zooms, dragging moves, a double click shows the whole image or zooms in. Touch: pinch, and drag when zoomed.")], {wide: true});
}
