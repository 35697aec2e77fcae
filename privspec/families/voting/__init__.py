"""A winner among candidates: rules of private voting, calibrated, compared and drawn by lot."""
