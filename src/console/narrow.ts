/** Whether the page is as narrow as on a phone, where what is looked for comes first. */
import { useEffect, useState } from 'preact/hooks';

/** As in the style sheet. */
const NARROW = '(max-width: 600px)';

/** Follows the width of the window. What is read and what is reached by keys have the same order, which a style sheet could not change for both. */
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
