// Elements, their texts and colours. Whatever comes from Kafka goes in as text, never as markup.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element with attributes and children; strings become text nodes. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Set an element's text, only where it differs, so that nothing is announced twice. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Colours of the present theme by name: the custom properties of the style sheet. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (_, name) => style.getPropertyValue(`--${name}`).trim() });
}

/** Call back whenever the theme changes between light and dark. */
export function onThemeChange(call) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", call);
}
