// The try of rules on past jobs.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("replayed"), words = place.dataset, button = document.getElementById("replay");
  const add = (parent, kind, text) => {
    const made = document.createElement(kind);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const table = (heads, rows) => {
    const box = add(place, "div");
    box.className = "wide";
    const made = add(box, "table"), head = add(add(made, "thead"), "tr"), body = add(made, "tbody");
    heads.forEach((each) => add(head, "th", each));
    rows.forEach((row) => { const line = add(body, "tr"); row.forEach((cell) => cell instanceof Node ? add(line, "td").append(cell) : add(line, "td", cell)); });
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    place.setAttribute("aria-busy", "true");
    const days = Number(document.getElementById("days").value) || 7;
    const answer = await fetch("/api/v1/rules/replay", {method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify({text: document.getElementById("text").value, since_days: days})}).catch(() => null);
    const found = answer && await answer.json().catch(() => null);
    button.disabled = false;
    place.replaceChildren();
    place.setAttribute("aria-busy", "false");
    if (!answer || !answer.ok) {
      const why = found && typeof found.detail === "string" ? found.detail : "";
      const told = add(place, "p", `${words.failed}. ${why}`);
      told.className = "alert";
      return;
    }
    add(place, "p", `${words.jobs}: ${found.judged}${found.more ? "+" : ""} · ${words.changed}: ${found.changed}`);
    const hours = (key) => found[key].map((each) => each.toFixed(1));
    table([words.rule, words.before, words.after], [
      ...Object.entries(found.findings).map(([name, counts]) => [name, ...counts]),
      [words.gpu, ...hours("freed_gpu_hours")], [words.core, ...hours("freed_core_hours")]]);
    if (!found.jobs.length) return;
    add(place, "p");
    table([words.job, words.user, words.before, words.after], found.jobs.map((each) => {
      const link = document.createElement("a");
      link.href = `/jobs/${each.job}`;
      link.textContent = each.job;
      return [link, each.user, [each.state[0], ...each.gone].join(", "), [each.state[1], ...each.new].join(", ")];
    }));
  });
});
