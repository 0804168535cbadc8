"""What happens on the training rows: encode the table, choose and train networks, look at their health."""
