#include "torus/counters.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/format.h"

namespace pw::torus {

void LinkCounters::add(const std::vector<Link>& links, uint64_t bytes, uint64_t packets) {
  for (const Link& link : links) {
    LinkCount& count = counts_[{link.node, link.direction}];
    count.bytes += bytes;
    count.packets += packets;
  }
}

namespace {

/// Formats numbers as JSON, with nothing to escape: "a":1,"b":2.
std::string fields(std::initializer_list<std::pair<std::string_view, uint64_t>> all) {
  std::string text;
  for (const auto& [name, value] : all) text += format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  return text;
}

}  // namespace

bool write_counters(const std::string& path, uint32_t endpoint, uint32_t node, const Counters& c,
                    const LinkCounters& links, const Grid& grid) {
  std::string lines = format("{{{}}}\n", fields({{"endpoint", endpoint},
                                                 {"node", node},
                                                 {"process", static_cast<uint64_t>(getpid())},
                                                 {"puts", c.puts},
                                                 {"put_bytes", c.put_bytes},
                                                 {"gets", c.gets},
                                                 {"get_bytes", c.get_bytes},
                                                 {"by_memory", c.by_memory},
                                                 {"unreachable", c.unreachable},
                                                 {"refused", c.refused},
                                                 {"delayed", c.delayed},
                                                 {"reordered", c.reordered},
                                                 {"datagrams", c.datagrams},
                                                 {"datagram_bytes", c.datagram_bytes},
                                                 {"retransmitted", c.again},
                                                 {"dropped", c.dropped},
                                                 {"duplicated", c.duplicated},
                                                 {"corrupted", c.corrupted},
                                                 {"rejected", c.rejected},
                                                 {"repeated", c.repeated}}));
  for (const auto& [place, count] : links.all()) {
    const Link link{place.first, place.second};
    lines +=
        format("{{\"endpoint\":{},\"link\":{{{}}},{}}}\n", endpoint,
               fields({{"from", link.node}, {"to", grid.behind(link)}, {"dimension", link.direction / 2}}),
               fields({{"bytes", count.bytes}, {"packets", count.packets}}));
  }
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  // Writes once, so that the lines of several processes do not mix.
  return file && write(file.get(), lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
}

}  // namespace pw::torus
