"""Writes the contract ids that a test carries into the results, where tests/contract.py counts them."""

import pytest


@pytest.fixture(autouse=True)
def _contract(request, record_property):
    ids = [i for mark in request.node.iter_markers("contract") for i in mark.args]
    if ids:
        record_property("contract", " ".join(ids))
