/**
 * JavaScript for a page with OvenPlayer: the height of an empty element added to its controls, px. Anything but 0 means that a style sheet of
 * the page changes the player's own elements, such as its buttons.
 */
export const ADDED_HEIGHT = `(() => {
  const added = document.createElement('div');
  document.querySelector('.op-helpers-container').append(added);
  const { offsetHeight } = added;
  added.remove();
  return offsetHeight;
})()`;
