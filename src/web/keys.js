"use strict";
// Keys press what is on the page: a button, a link, a box. Nothing here decides anything.
(() => {
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const store = (name, value) => { try { localStorage.setItem(name, value); } catch { /* it holds for this page */ } };
  const dialog = document.getElementById("keys");
  const letters = document.getElementById("letters");
  if (letters) {
    letters.checked = stored("letters") !== "off";
    letters.addEventListener("change", () => store("letters", letters.checked ? "on" : "off"));
  }

  const bound = () => [...document.querySelectorAll("[data-keys]")].filter((element) => element.dataset.keys);
  const name = (element) => {
    const label = element.labels && element.labels[0];
    const clone = (label || element).cloneNode(true);
    clone.querySelectorAll("kbd, select, input").forEach((inner) => inner.remove());
    return clone.textContent.trim() || element.getAttribute("aria-label") || "";
  };
  const tell = () => {
    const list = dialog.querySelector("dl");
    list.replaceChildren();
    const line = (keys, what) => {
      const term = document.createElement("dt");
      for (const key of keys) {
        const sign = document.createElement("kbd");
        sign.textContent = key;
        term.append(sign, " ");
      }
      const text = document.createElement("dd");
      text.textContent = what;
      list.append(term, text);
    };
    for (const element of bound()) line(element.dataset.keys.split(" "), name(element));
    for (const element of document.querySelectorAll("[data-chord]")) line(["g", element.dataset.chord], element.textContent.trim());
    dialog.showModal();
  };

  const press = (element) => {
    if (element.id === "show-keys") return tell();
    if (element.matches("input, textarea")) return element.focus();
    element.click();
  };
  let chord = false;
  document.addEventListener("keydown", (event) => {
    const box = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (box) {
      if (event.key === "Escape") box.blur();
      if (event.key === "Enter" && event.ctrlKey && box.matches("textarea")) {
        const note = box.form.querySelector('button[value="note"]');
        if (note) { event.preventDefault(); note.click(); }
      }
      return;
    }
    if (dialog && dialog.open) return;
    if (event.ctrlKey && event.key === "z" && !event.repeat) {
      const undo = document.querySelector('[data-keys~="z"]');
      if (undo) { event.preventDefault(); press(undo); }
      return;
    }
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (letters && !letters.checked) return;
    if (chord) {
      chord = false;
      const link = document.querySelector(`[data-chord="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); press(link); }
      return;
    }
    if (event.key === "g") { chord = true; return; }
    const element = bound().find((one) => one.dataset.keys.split(" ").includes(event.key));
    if (element) { event.preventDefault(); press(element); }
  });
  const help = document.getElementById("show-keys");
  if (help) help.addEventListener("click", tell);

  // One form is sent once, however often a key is pressed.
  for (const form of document.querySelectorAll('form[method="post"]')) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) { event.preventDefault(); return; }
      form.dataset.sent = "yes";
      for (const box of form.querySelectorAll("[data-draft]")) sessionStorage.removeItem(`draft ${box.dataset.draft}`);
    });
  }
  window.addEventListener("pageshow", (event) => {
    // A page that comes back shows what was, not what is.
    if (event.persisted) location.reload();
  });

  // What was written and not saved is there again when the page is.
  for (const box of document.querySelectorAll("[data-draft]")) {
    const key = `draft ${box.dataset.draft}`;
    box.value = box.value || sessionStorage.getItem(key) || "";
    box.addEventListener("input", () => sessionStorage.setItem(key, box.value));
  }

  const marks = document.getElementById("marks");
  if (marks) {
    const show = (on) => { document.body.classList.toggle("unmarked", !on); marks.setAttribute("aria-pressed", String(on)); };
    show(stored("marks") !== "off");
    marks.addEventListener("click", () => {
      const on = document.body.classList.contains("unmarked");
      store("marks", on ? "on" : "off");
      show(on);
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
