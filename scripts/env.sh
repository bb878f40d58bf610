# Sourced, not run: where the virtual environment is, where CMake finds torch in it, and where the
# sources of the GUI's libraries are. All lie outside the checkout so that a second clone does not
# download them again.

SLUICE_VENV="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/venv"
SLUICE_TORCH_CMAKE=""
for sluice_dir in "$SLUICE_VENV"/lib/python3*/site-packages/torch/share/cmake; do
  if [ -d "$sluice_dir" ]; then SLUICE_TORCH_CMAKE="$sluice_dir"; fi
done
unset sluice_dir
SLUICE_GUI_SOURCES="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/imgui-bundle-1.93.0"
# Programs of others that tests let read our exports.
SLUICE_READERS="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/readers"
# What scripts/tokenize makes tokens with.
SLUICE_TOKENIZERS="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/tokenizers"
# The client library of the Model Context Protocol, which tests let ask `sluice mcp`.
SLUICE_MCP_CLIENT="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/mcp_client"
export SLUICE_VENV SLUICE_TORCH_CMAKE SLUICE_GUI_SOURCES SLUICE_READERS SLUICE_TOKENIZERS
export SLUICE_MCP_CLIENT

# Lets ccache serve one checkout's objects to another: paths below the checkout do not count.
CCACHE_BASEDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export CCACHE_BASEDIR CCACHE_NOHASHDIR=true
