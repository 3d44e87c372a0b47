// Identifies a machine for route tables, because costs measured on one machine are not used on another, and
// says where a user keeps tables and rules.
#pragma once

#include <map>
#include <string>

namespace pw {

/// "cpu" -> "...", "cores" -> "2", "cuda:0" -> "NVIDIA H200", ...
std::map<std::string, std::string> machine();

/// Where to look for this machine's route table if no other file is named.
std::string default_table_file();

/// Where to look for the user's rules if no other file is named.
std::string default_rules_file();

}  // namespace pw
