// Does what its input says, a line each: "region NAME", "enter NAME", "leave", "child NAME" (a region in a
// child process). Answers each by "done".
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <peerway/trace.hpp>
#include <string>
#include <vector>

int main() {
  std::vector<std::unique_ptr<peerway::trace::Region>> open;
  std::string action, name;
  while (std::cin >> action) {
    if (action != "leave") std::cin >> name;
    if (action == "region") {
      const peerway::trace::Region region(name);
    } else if (action == "enter") {
      open.push_back(std::make_unique<peerway::trace::Region>(name));
    } else if (action == "leave") {
      open.pop_back();
    } else if (const pid_t child = fork(); child == 0) {
      {
        const peerway::trace::Region region(name);
      }
      _exit(0);
    } else {
      waitpid(child, nullptr, 0);
    }
    std::cout << "done" << std::endl;
  }
}
