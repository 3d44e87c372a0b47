// Keeps a page up to date: fetches it regularly and replaces the marked parts that changed. Opened parts stay open.
"use strict";
(() => {
  const EVERY = 10000;
  // Adds the reader's local time to each UTC time, if they differ.
  const localized = (root) => {
    for (const each of root.querySelectorAll("time[datetime]")) {
      const at = new Date(each.getAttribute("datetime"));
      const offset = -at.getTimezoneOffset();
      if (!offset || Number.isNaN(at.getTime())) continue;
      const sign = offset < 0 ? "−" : "+", hours = Math.floor(Math.abs(offset) / 60), minutes = Math.abs(offset) % 60;
      const zone = `UTC${sign}${hours}${minutes ? `:${String(minutes).padStart(2, "0")}` : ""}`;
      const two = (number) => String(number).padStart(2, "0");
      const day = at.getDate() === at.getUTCDate() ? "" : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
      each.dataset.local = `(${day}${two(at.getHours())}:${two(at.getMinutes())} ${zone})`;
    }
  };
  localized(document);
  const parts = () => [...document.querySelectorAll("[data-live]")];
  if (!parts().length) return;
  const opened = (part) => [...part.querySelectorAll("details")].map((each) => each.open);
  const refresh = async () => {
    if (document.hidden || window.getSelection().toString()) return;
    try {
      const answer = await fetch(location.href, {headers: {"X-Live": "1"}});
      if (answer.redirected) { location.href = answer.url; return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const fresh = page.querySelector(`[data-live="${part.dataset.live}"]`);
        if (!fresh) continue;
        localized(fresh);
        const state = opened(part);
        fresh.querySelectorAll("details").forEach((each, i) => { if (state[i]) each.open = true; });
        const focused = part.contains(document.activeElement) ? document.activeElement : null;
        if (fresh.innerHTML === part.innerHTML || (focused && !focused.matches(".tile"))) continue;
        const tile = focused?.querySelector("b").textContent; // its node: a focused tile must not stop the page
        part.innerHTML = fresh.innerHTML;
        if (focused) [...part.querySelectorAll(".tile")].find((each) => each.querySelector("b").textContent === tile)?.focus({preventScroll: true});
      }
      document.body.classList.remove("offline");
      document.dispatchEvent(new Event("peerway-live"));
    } catch {
      document.body.classList.add("offline");
    }
  };
  const every = Number(new URLSearchParams(location.search).get("every")) || EVERY;
  setInterval(refresh, Math.max(500, every));
})();
