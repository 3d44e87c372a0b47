// Keeps the page for a screen up to date. A token after # stays in this browser: it is sent only in a header.
"use strict";
(() => {
  const EVERY = 10000, RELOAD = 6 * 3600000;
  const place = document.getElementById("wall"), begun = Date.now();
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  let known = "";
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const say = (text) => {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = text;
    place.replaceChildren(note);
  };
  const refresh = async () => {
    try {
      const answer = await fetch(`/wall/now${location.search}`, {headers, redirect: "manual"});
      if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
        known = "";
        say(document.body.dataset.login);
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (text !== known) place.innerHTML = text;
      known = text;
      document.body.classList.remove("offline");
      if (Date.now() - begun > RELOAD) location.reload(); // takes the scripts of a new version, too
    } catch {
      document.body.classList.add("offline");
    }
  };
  refresh();
  const every = Number(new URLSearchParams(location.search).get("every")) || EVERY;
  setInterval(refresh, Math.max(500, every));
})();
