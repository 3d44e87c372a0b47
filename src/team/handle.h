// What a pw_team is, for the layers above. Contexts share the team: it is left once they and the handle are
// gone.
#pragma once

#include <memory>

#include "peerway/peerway.h"
#include "team/team.h"

struct pw_team {
  std::shared_ptr<pw::Team> team;
};
