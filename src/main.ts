#!/usr/bin/env node
import { refuseOldNode } from './program/node-version.js';

refuseOldNode();
const { runCommand } = await import('./program/cli.ts');
process.exitCode = await runCommand(process.argv.slice(2));
