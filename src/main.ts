#!/usr/bin/env node
import { refuseOldNode } from './node-version.js';

refuseOldNode();
const { runCommand } = await import('./cli.ts');
process.exitCode = await runCommand(process.argv.slice(2));
