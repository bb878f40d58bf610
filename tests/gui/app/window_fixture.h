#pragma once
// The program in a window under Xvfb, against a finished run that `sluice` trained and live
// ones. One display and one trained run for all tests of this program.

#include <filesystem>
#include <functional>
#include <string>

#include "tests/gui/app/driven_app.h"

namespace sluice::gui {

namespace fs = std::filesystem;

// False: the test is skipped, and why has been said.
bool can_run();

// The command `sluice` of $SLUICE_BUILD, else the one beside this program: sanitizers' builds have
// none that trains.
std::string sluice_program();
// The program with a window, ready for a shell.
std::string gui_program();
// A file or folder that goes with the tests.
std::string test_path(const std::string& name);
// A text of some length that is no database.
std::string text_file();
// `sluice train` of the tiny model into test_path(name), ready for a shell.
std::string train_command(const std::string& name, int steps);
// The database of a run that has ended.
std::string trained_run();
// A made one: twelve steps of 100 ms that compute, of which the ninth takes four times as long, and
// samples of what computes.
std::string run_with_slow_step();

AppOptions options_for(const std::string& database);
// Where pictures are kept: build/PRESET/gui_pictures.
std::string picture_folder();

// The script begins when the live run in the window has steps and its knobs are known.
void await_live_run(const Drive& d);
// The same with a run that is killed when the script is through.
std::string drive_live(const std::string& name, AppOptions options, int steps,
                       const std::function<void(const Drive&)>& script);
std::string value_in_force(const Drive& d, const std::string& key);

}  // namespace sluice::gui
