/** A program that allocates the number of megabytes in its argument, and reports when it has them. */
const held = Buffer.alloc(Number(process.argv[2]) * 1024 * 1024, 1);
process.stdout.write(held.length > 0 ? 'taken' : 'nothing');
