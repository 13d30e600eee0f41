"use strict";
(() => {
  const form = document.getElementById("filter");
  const matrix = document.querySelector("#matrix table");
  if (!form || !matrix) return;
  const rows = [...matrix.querySelectorAll("tbody tr:not(.group)")].map((row) => ({
    row,
    text: row.cells[0].textContent.toLowerCase(),
    category: row.parentElement.dataset.g,
    cells: [...row.cells].slice(1).map((cell) => ({ cell, reason: cell.textContent, kind: cell.className })),
  }));
  const heads = [...matrix.tHead.rows[0].cells].slice(1);
  const articles = [...document.querySelectorAll("#failures article")].map((article) => ({
    article,
    text: article.querySelector("h4").parentElement.textContent.toLowerCase(),
    candidate: article.dataset.k,
    category: article.dataset.g,
    reason: article.dataset.r,
    regression: "x" in article.dataset,
  }));
  const sections = [...document.querySelectorAll("#failures section")];
  const count = form.querySelector("output");
  const matches = (cells, wanted) => {
    const kind = (letter) => cells.some((cell) => cell.kind.split(" ").includes(letter));
    switch (wanted) {
      case "": return true;
      case "*": return cells.some((cell) => !cell.kind.split(" ").includes("p"));
      case "invalid": return kind("i");
      case "regression": return kind("x");
      case "differ": return kind("p") && kind("f");
      default: return cells.some((cell) => cell.reason.startsWith(wanted));
    }
  };
  const apply = () => {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const category = form.elements.category.value;
    const outcome = form.elements.outcome.value;
    const candidate = form.elements.candidate ? form.elements.candidate.value : "";
    const named = (text) => words.every((word) => text.includes(word));
    let shown = 0;
    for (const { row, text, category: of, cells } of rows) {
      const looked = candidate === "" ? cells : [cells[Number(candidate)]];
      const keep = named(text) && (category === "" || of === category) && matches(looked, outcome);
      row.hidden = !keep;
      shown += keep ? 1 : 0;
    }
    heads.forEach((head, idx) => {
      const away = candidate !== "" && idx !== Number(candidate);
      if (head.hidden !== away) {
        head.hidden = away;
        for (const { cells } of rows) cells[idx].cell.hidden = away;
      }
    });
    for (const body of matrix.tBodies) body.hidden = !body.querySelector("tr:not(.group):not([hidden])");
    for (const { article, text, candidate: by, category: of, reason, regression } of articles) {
      const wanted = ["", "*", "differ"].includes(outcome) || (outcome === "regression" ? regression : outcome === reason);
      article.hidden = !(named(text) && (category === "" || of === category) && (candidate === "" || by === candidate) && wanted);
    }
    for (const section of sections) section.hidden = !section.querySelector("article:not([hidden])");
    count.textContent = `${shown} of ${rows.length} cases`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      form.elements.text.focus();
    }
  });
  // A link to a failure that the filter hides shows it again.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.hidden) {
      form.reset();
      setTimeout(() => target.scrollIntoView());
    }
  });
  apply();
  document.documentElement.dataset.ready = "yes";
})();
