/** A program that takes as many megabytes as its argument says, and tells when it has them. */
const held = Buffer.alloc(Number(process.argv[2]) * 1024 * 1024, 1);
process.stdout.write(held.length > 0 ? 'taken' : 'nothing');
