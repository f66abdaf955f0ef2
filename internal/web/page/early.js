// Loaded before the first paint, so that the page does not appear in the wrong theme.
try {
  document.documentElement.dataset.theme = localStorage.getItem('theme') || 'auto';
} catch {
  document.documentElement.dataset.theme = 'auto';
}
