// What a pw_team is, for the layers above.
#pragma once

#include <memory>

#include "peerway/peerway.h"
#include "team/team.h"

struct pw_team {
  std::unique_ptr<pw::Team> team;
};
