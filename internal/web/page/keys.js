// The keyboard. Keys with Ctrl, Alt or Meta belong to the browser, and those typed into a field to the field.

/**
 * keys calls the action of a key: {'/': fn, ArrowDown: fn, …}; inField has those that work in the search field. An action
 * that returns false leaves the key to the browser.
 */
export function keys(actions, inField) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector('dialog[open]')) return; // its own Escape closes it
    const field = event.target.closest?.('input, select, textarea');
    const action = (field ? inField : actions)[event.key];
    if (!action || (field && field.id !== 'search' && event.key !== 'Escape')) return;
    if (action(event) !== false) event.preventDefault();
  });
}
