// Tabs: one panel is shown at a time, the one that the address names.

import { byId } from "./dom.js";

const panelOf = (tab) => byId(tab.getAttribute("aria-controls"));

/** Let the buttons of a list show the panels that they control; `changed` is called after each. */
export function makeTabs(list, changed) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panelOf(tab).hidden = tab !== chosen;
    }
    changed(panelOf(chosen).id);
  };
  const fromAddress = () => choose(tabs.find((tab) => `#${panelOf(tab).id}` === location.hash) ?? tabs[0]);
  for (const [at, tab] of tabs.entries()) {
    tab.addEventListener("click", () => history.replaceState(null, "", `#${panelOf(tab).id}`));
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      const next = step && tabs.at((at + step) % tabs.length);
      next?.click();
      next?.focus();
    });
  }
  addEventListener("hashchange", fromAddress);
  fromAddress();
}
