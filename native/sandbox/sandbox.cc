// Starts a program that may read a few folders, and is otherwise cut off from the machine: no network, no new privileges, no writing.
// Linux.
//
//   millrace-sandbox [--read PATH | --use PATH | --execute PATH | --memory BYTES]... -- PROGRAM [ARGUMENT]...
//   millrace-sandbox --probe      prints the restrictions that this kernel supports, one word a line
//
// --read: files below PATH may be read. --use: also written to, for devices. --execute: read, and run as a program.
// --memory: limit of the program's data.
// Paths that do not exist are skipped, as are restrictions that the kernel does not support.
// Exits with 126 if the program cannot be run.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int kCannotRun = 126;

// From <linux/landlock.h>, which older distributions lack; the system call numbers are the same on all architectures.
constexpr long kLandlockCreateRuleset = 444;
constexpr long kLandlockAddRule = 445;
constexpr long kLandlockRestrictSelf = 446;
constexpr uint32_t kRulesetVersion = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kExecute = 1u << 0;
constexpr uint64_t kWriteFile = 1u << 1;
constexpr uint64_t kReadFile = 1u << 2;
constexpr uint64_t kReadDir = 1u << 3;
// All rights up to MAKE_SYM, the last of ABI 1.
constexpr uint64_t kAllOfAbi1 = (1u << 13) - 1;
constexpr uint64_t kRefer = 1u << 13;
constexpr uint64_t kTruncate = 1u << 14;

// Scopes: signals to processes outside the sandbox, and their abstract sockets.
constexpr uint64_t kScopes = 3;

struct Ruleset {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
};

struct PathBeneath {
  uint64_t access;
  int32_t parent;
} __attribute__((packed));

long LandlockAbi() { return syscall(kLandlockCreateRuleset, nullptr, 0, kRulesetVersion); }

uint64_t AccessOf(const char* option) {
  if (strcmp(option, "--read") == 0) return kReadFile | kReadDir;
  if (strcmp(option, "--use") == 0) return kReadFile | kReadDir | kWriteFile;
  if (strcmp(option, "--execute") == 0) return kReadFile | kReadDir | kExecute;
  return 0;
}

bool IsMemory(const char* option) { return strcmp(option, "--memory") == 0; }

/// Allocations beyond `text` bytes fail, which ends the program. False if `text` is not a number.
bool RestrictMemory(const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long bytes = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || bytes == 0) return false;
  const rlimit limit = {bytes, bytes};
  return setrlimit(RLIMIT_DATA, &limit) == 0;
}

bool Allow(int ruleset, const char* path, uint64_t access) {
  const int parent = open(path, O_PATH | O_CLOEXEC);
  if (parent < 0) return errno == ENOENT || errno == EACCES || errno == ENOTDIR;
  struct stat status;
  // The kernel refuses rights of folders for a file.
  if (fstat(parent, &status) == 0 && !S_ISDIR(status.st_mode)) access &= ~kReadDir;
  const PathBeneath rule = {access, parent};
  const bool added = syscall(kLandlockAddRule, ruleset, kPathBeneath, &rule, 0) == 0;
  close(parent);
  return added;
}

/// File access: only to the paths in the options. `arguments` ends before `--`.
bool RestrictFiles(char** arguments, char** end) {
  const long abi = LandlockAbi();
  if (abi < 1) return false;
  const Ruleset handled = {kAllOfAbi1 | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0), 0, abi >= 6 ? kScopes : 0};
  // Older kernels know only the first members of the structure.
  const size_t known = abi >= 6 ? sizeof handled : sizeof handled.files;
  const int ruleset = static_cast<int>(syscall(kLandlockCreateRuleset, &handled, known, 0));
  if (ruleset < 0) return false;
  bool complete = true;
  for (char** at = arguments; at + 1 < end; at += 2) {
    if (!IsMemory(at[0])) complete = Allow(ruleset, at[1], AccessOf(at[0])) && complete;
  }
  complete = complete && syscall(kLandlockRestrictSelf, ruleset, 0) == 0;
  close(ruleset);
  return complete;
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

#define REFUSE(number, error) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/// System calls: none that reaches the network, other processes or the internals of the kernel.
bool RestrictCalls() {
  if (kArchitecture == 0) return false;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#if defined(__x86_64__)
      // x32 calls are the same calls under other numbers.
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
#endif
      REFUSE(SYS_socket, EACCES),
      // io_uring could open sockets as well; programs handle ENOSYS.
      REFUSE(425 /* io_uring_setup */, ENOSYS),
      REFUSE(SYS_ptrace, EPERM),
      REFUSE(SYS_process_vm_readv, EPERM),
      REFUSE(SYS_process_vm_writev, EPERM),
      REFUSE(438 /* pidfd_getfd */, EPERM),
      REFUSE(SYS_bpf, EPERM),
      REFUSE(SYS_perf_event_open, EPERM),
      REFUSE(SYS_keyctl, EPERM),
      REFUSE(SYS_add_key, EPERM),
      REFUSE(SYS_request_key, EPERM),
      REFUSE(SYS_mount, EPERM),
      REFUSE(SYS_umount2, EPERM),
      REFUSE(SYS_unshare, EPERM),
      REFUSE(SYS_setns, EPERM),
      REFUSE(SYS_chroot, EPERM),
      REFUSE(SYS_init_module, EPERM),
      REFUSE(SYS_finit_module, EPERM),
      REFUSE(SYS_kexec_load, EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Tries each restriction and prints those that work.
int Probe() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) puts("no-new-privileges");
  const bool files = RestrictFiles(nullptr, nullptr);
  const bool calls = RestrictCalls();
  if (files) puts("files");
  if (calls) puts("network");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "--probe") == 0) return Probe();
  int at = 1;
  while (at + 1 < count && strcmp(arguments[at], "--") != 0) {
    if (AccessOf(arguments[at]) == 0 && !IsMemory(arguments[at])) {
      fprintf(stderr, "millrace-sandbox: what is '%s'?\n", arguments[at]);
      return kCannotRun;
    }
    if (IsMemory(arguments[at]) && !RestrictMemory(arguments[at + 1])) {
      fprintf(stderr, "millrace-sandbox: --memory takes a number of bytes, not '%s'\n", arguments[at + 1]);
      return kCannotRun;
    }
    at += 2;
  }
  if (at + 1 >= count || strcmp(arguments[at], "--") != 0) {
    fprintf(stderr, "millrace-sandbox: no program is named\n");
    return kCannotRun;
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const rlimit none = {0, 0};
  // A core dump would contain media, in a place that no operator checks.
  setrlimit(RLIMIT_CORE, &none);
  RestrictFiles(arguments + 1, arguments + at);
  RestrictCalls();
  execv(arguments[at + 1], arguments + at + 1);
  fprintf(stderr, "millrace-sandbox: %s: %s\n", arguments[at + 1], strerror(errno));
  return kCannotRun;
}
