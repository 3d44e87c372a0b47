// peerway-storage OPERATION word=value ...: one operation on a file system, in a process of its own, so that
// its parent can give it up when the mount hangs. It prints one object of JSON; one that failed has
// `error`, and exits with 1.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "operations.h"

namespace {

using namespace pw::storage;

struct Operation {
  const char* name;
  Answer (*run)(const Words&);
};

constexpr Operation kOperations[] = {
    {"write", write_files}, {"read", read_files},     {"random", random_blocks}, {"verify", verify_files},
    {"small", small_files}, {"residency", residency}, {"let-go", let_go},        {"space", space},
    {"make", make_folder},  {"list", list_folders},   {"remove", remove_folder},
};

int say(const Answer& answer, int status) {
  std::puts(answer.text().c_str());
  return std::fflush(stdout) == 0 ? status : 1;
}

}  // namespace

int main(int count, char** words) {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would take the answer
  if (getppid() != parent) return 1;
  const char* const requested = count > 1 ? words[1] : "";
  try {
    for (const Operation& operation : kOperations)
      if (std::strcmp(requested, operation.name) == 0)
        return say(operation.run(Words(count - 2, words + 2)), 0);
    throw Misuse(std::string("no operation '") + requested + "'");
  } catch (const Failed& failure) {
    const char* const name = strerrorname_np(failure.number);
    return say(Answer()
                   .add("error", failure.what())
                   .add("errno", name ? name : "unknown")
                   .add("says", std::strerror(failure.number))
                   .add("at", failure.at),
               1);
  } catch (const std::exception& failure) {
    return say(Answer().add("error", failure.what()).add("errno", "").add("says", "").add("at", uint64_t{0}),
               2);
  }
}
