// Gathers the facts about a pair of memories that do not depend on the path.
#include "context/resolver.h"

namespace pw {

Pair facts(Region& local, Remote& remote, Importer& importer) {
  Pair pair;
  const Export& exported = remote.key.exported;
  pair.local = local.device().id();
  pair.remote = remote.key.device;
  pair.local_handle = local.allocation().handle;
  pair.remote_handle = exported.handle;
  pair.same_host = importer.same_host(remote.rank());
  pair.same_process = importer.same_process(remote.rank());
  Device& device = worker(local, remote);
  if (!pair.same_host) {
    pair.reachable = false;
    pair.why_not_reachable = "the peer is on another host";
  } else if (exported.handle == Handle::none && !pair.same_process) {
    pair.reachable = false;
    pair.why_not_reachable = "the peer's memory cannot be exported: " + remote.key.why_none;
  } else {
    pair.reachable = device.reaches(exported, pair.why_not_reachable);
  }
  pair.kernels = device.has_kernels(pair.why_no_kernels);
  return pair;
}

}  // namespace pw
