/** Names of code in backticks on a page: files, folders, and identifiers with a capital inside. */

/** A name on a page; `line` counts from 1. */
export interface NamedThing {
  readonly kind: 'file' | 'folder' | 'name';
  readonly text: string;
  readonly line: number;
}

const BLOCK = /^```.*?^```/gms;
const CODE = /`([^`\n]+)`/g;
/** A file in a folder, or with an extension that only this repository uses; `NAME` stands for any name. */
const FILE = /^(?:[\w.@-]+\/)+[\w.-]+\.[a-z]{1,7}$|^[a-z][\w-]*\.(?:ts|mjs|cc|h)$/;
const FOLDER = /^(?:[a-z][\w.-]*\/)+$/;
const NAME = /(?<![\w./-])[A-Za-z][\w$]*[a-z][A-Z][\w$]*/g;

/** The names on a page, without those in code blocks. */
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
