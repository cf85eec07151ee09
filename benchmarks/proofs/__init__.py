"""What gputop claims of its own measuring, tried on a device: python -m benchmarks.proofs FILE [PART...]

    state     a plan takes as long alone, after another library was visited, and amid the whole ladder
    copies    two copies of one plan are never told apart
    spin      a wait of known length is found where it is large, and pooled windows tell a small one
    split     two numbers of parts of one product, by many windows
    watched   a pass takes as long whether a busy screen shows it or one that stands still

FILE keeps what was measured, as JSON: a part that was stopped goes on there, and one that is whole is not
measured again. `make results` writes docs/proofs.md from docs/proofs.json.
"""
