/** What a page says of the code in backticks: files, folders, and names with a capital inside. */

/** One name of a page; `line` counts from 1. */
export interface NamedThing {
  readonly kind: 'file' | 'folder' | 'name';
  readonly text: string;
  readonly line: number;
}

const BLOCK = /^```.*?^```/gms;
const CODE = /`([^`\n]+)`/g;
/** In a folder, or of a kind that only this repository has; `NAME` in it stands for many. */
const FILE = /^(?:[\w.@-]+\/)+[\w.-]+\.[a-z]{1,7}$|^[a-z][\w-]*\.(?:ts|mjs|cc|h)$/;
const FOLDER = /^(?:[a-z][\w.-]*\/)+$/;
const NAME = /(?<![\w./-])[A-Za-z][\w$]*[a-z][A-Z][\w$]*/g;

/** The names of a page, without those in its blocks of code. */
export function namesOf(page: string): NamedThing[] {
  const text = page.replace(BLOCK, (block) => block.replace(/[^\n]/g, ''));
  return text.split('\n').flatMap((line, at) =>
    [...line.matchAll(CODE)].flatMap(([, code = '']): NamedThing[] => {
      const place = { line: at + 1 };
      if (FILE.test(code)) return /[A-Z]{3}/.test(code) ? [] : [{ kind: 'file', text: code, ...place }];
      if (FOLDER.test(code)) return [{ kind: 'folder', text: code, ...place }];
      return [...code.matchAll(NAME)].map(([name]) => ({ kind: 'name', text: name, ...place }));
    }),
  );
}
