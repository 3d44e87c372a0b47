#include "team/collective.h"

#include "base/format.h"

namespace pw {

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::barrier:
      return "barrier";
    case Collective::all_gather:
    case Collective::parts:
      return "all_gather";
    case Collective::context:
      return "making a context";
  }
  return "collective";
}

std::string call_of(Collective kind, size_t bytes) {
  switch (kind) {
    case Collective::all_gather:
      return format("all_gather of {} bytes", bytes);
    case Collective::parts:
      return format("all_gather of {} bytes with lengths that may differ", bytes);
    default:
      return name_of(kind);
  }
}

}  // namespace pw
