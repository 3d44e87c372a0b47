// Requests of UCX that wait until their endpoint has room.
#include <mutex>

#include "ucx/transport.h"

namespace pw::uct::PW_UCX {

// UCX tries again at once if this returns "busy", so that must mean that there is room now.
ucs_status_t pending_add(uct_ep_t* ep, uct_pending_req_t* request, unsigned) {
  Connection& connection = Connection::of(ep);
  {
    Domain& domain = connection.interface->domain;
    const std::scoped_lock held(domain.lock);
    const bool room =
        connection.peer().failed() || (connection.pending.empty() && !domain.is_out_of_room() &&
                                       !connection.peer().held_back() && connection.channel->room());
    if (room) return UCS_ERR_BUSY;
  }
  if (connection.pending.empty()) connection.interface->waiting.push_back(&connection);
  connection.pending.push_back(request);
  return UCS_OK;
}

void pending_purge(uct_ep_t* ep, uct_pending_purge_callback_t callback, void* arg) {
  Connection& connection = Connection::of(ep);
  if (connection.pending.empty()) return;
  std::erase(connection.interface->waiting, &connection);
  std::deque<uct_pending_req_t*> requests;
  requests.swap(connection.pending);
  for (uct_pending_req_t* request : requests) callback(request, arg);
}

// A request that finds no room stays first in its queue. Its callback may purge or destroy connections, so
// the loop counts instead of iterating over the list.
unsigned dispatch_pending(Interface& interface) {
  unsigned done = 0;
  for (size_t turns = interface.waiting.size(); turns > 0 && !interface.waiting.empty(); --turns) {
    Connection* connection = interface.waiting.front();
    interface.waiting.pop_front();
    interface.waiting.push_back(connection);
    while (!connection->pending.empty()) {
      uct_pending_req_t* request = connection->pending.front();
      connection->pending.pop_front();
      connection->dispatching = true;
      const ucs_status_t status = request->func(request);
      connection->dispatching = false;
      if (status != UCS_OK) {
        connection->pending.push_front(request);
        break;
      }
      ++done;
    }
    if (connection->pending.empty()) std::erase(interface.waiting, connection);
  }
  return done;
}

}  // namespace pw::uct::PW_UCX
