/** Whether the page is as narrow as on a phone, where the most important part comes first. */
import { useEffect, useState } from 'preact/hooks';

/** As in the style sheet. */
const NARROW = '(max-width: 600px)';

/** Follows the width of the window. Reading order and keyboard order must match, so a style sheet alone cannot reorder the page. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const follow = (): void => setNarrow(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, []);
  return isNarrow;
}
